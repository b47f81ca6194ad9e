/** Search results over all settings, with values and links. */
import type { FC } from 'hono/jsx'
import { type Frame, SettingsFrame } from './frame.tsx'
import { type ShownField, valueText } from './section.tsx'

export interface Found {
  /** Link to the place on its tab. */
  href: string
  tab: string
  label: string
  help: string
  /** null: not a setting. */
  field: ShownField | null
}

export interface Search {
  frame: Frame
  /** Only settings that differ from their default. */
  isChangedOnly: boolean
  found: Found[]
}

export const SearchPage: FC<Search> = ({ frame, isChangedOnly, found }) => (
  <SettingsFrame frame={frame} title={isChangedOnly ? 'Changed from default' : 'Search settings'}>
    {isChangedOnly && frame.search !== '' && (
      <p>
        Changed settings matching “{frame.search}”.{' '}
        <a href={`/settings/search?q=${encodeURIComponent(frame.search)}`}>Search all settings</a>
      </p>
    )}
    <section class="card" aria-label="Results">
      {found.length === 0 ? (
        <div class="card-body">
          <p>
            {isChangedOnly ? 'All settings have their default value.' : 'No settings match.'}{' '}
            <a href="/settings/search">Show all settings</a>
          </p>
        </div>
      ) : (
        <ul>
          {found.map((one) => (
            <Result {...one} />
          ))}
        </ul>
      )}
    </section>
  </SettingsFrame>
)

const Result: FC<Found> = ({ href, tab, label, help, field }) => (
  <li class="found">
    <div class="setting-text">
      <a class="setting-label" href={href}>
        {label}
      </a>
      {field?.isChanged && <span class="tag tag-changed">changed</span>}
      <p class="hint">
        {tab} · {help}
      </p>
    </div>
    {field && (
      <p class="found-value">
        <strong>{valueText(field, field.value)}</strong>
        {field.isChanged && <span class="hint">default: {valueText(field, field.default)}</span>}
      </p>
    )}
  </li>
)
