/** The audit log: who changed what, when and from where, and whether the log is whole. */
import type { FC } from 'hono/jsx'
import type { Audit, Chain } from '../../src/admin/audit-page.ts'
import type { AuditEntry } from '../../src/model/audit-log.ts'
import { CheckIcon, ClockIcon, WarningIcon } from '../ui/icons.tsx'
import { SettingsFrame } from './frame.tsx'
import { numberText } from './words.ts'

export const AuditLogPage: FC<Audit> = (audit) => {
  const { frame, now, items, chain, links } = audit
  return (
    <SettingsFrame frame={frame} now={now} title="Audit log">
      <ChainLine chain={chain} verify={links.verify} />
      <Filters {...audit} />
      <section class="card" aria-label="Entries">
        {items.length === 0 ? (
          <div class="card-body">
            <p>
              {links.clear ? 'No entry is like that. ' : 'Nothing has been changed yet.'}
              {links.clear && <a href={links.clear}>Clear filters</a>}
            </p>
          </div>
        ) : (
          <ul class="audit">
            {items.map((entry) => (
              <Entry {...entry} />
            ))}
          </ul>
        )}
        {(links.older || links.newest) && (
          <nav class="card-part actions" aria-label="Pages">
            {links.newest && (
              <a class="button button-plain" href={links.newest}>
                Newest
              </a>
            )}
            {links.older && (
              <a class="button button-plain" href={links.older} rel="next">
                Older
              </a>
            )}
          </nav>
        )}
      </section>
    </SettingsFrame>
  )
}

/** Each row is hashed with the one before, so a row that was changed or taken out shows. */
const ChainLine: FC<{ chain: Chain; verify: string }> = ({ chain, verify }) => {
  if (chain.isWhole === null)
    return (
      <p class="chain tone-idle">
        <ClockIcon /> {numberText(chain.rows)} rows, not checked just now.{' '}
        <a href={verify}>Check that the log is whole</a>
      </p>
    )
  if (chain.isWhole)
    return (
      <p class="chain tone-good">
        <CheckIcon /> The log is whole: {wholeText(chain)}.
      </p>
    )
  return (
    <p class="chain tone-bad" role="alert">
      <WarningIcon /> The log was tampered with{chain.rowId === null ? '' : ` at row ${chain.rowId}`}: {chain.problem}.
    </p>
  )
}

const wholeText = ({ rows, unchained, purgedThroughId }: Extract<Chain, { isWhole: true }>): string =>
  [
    `${numberText(rows)} ${rows === 1 ? 'row' : 'rows'}`,
    ...(unchained > 0 ? [`${numberText(unchained)} of them from before rows were hashed`] : []),
    ...(purgedThroughId === null ? [] : [`deleted by retention up to row ${numberText(purgedThroughId)}`]),
  ].join(', ')

const Filters: FC<Audit> = ({ filters, options, links }) => (
  <form class="card audit-filters" method="get" action="/audit" data-auto>
    <Select
      label="What"
      name="action"
      chosen={filters.action}
      choices={options.actions.map((name) => ({ id: name, name: eventText(name) }))}
    />
    <Select label="Who" name="actor_user_id" chosen={filters.actor} choices={options.people} />
    <Select
      label="About"
      name="target_type"
      chosen={filters.targetType}
      choices={options.targetTypes.map((name) => ({ id: name, name: eventText(name) }))}
    />
    <Select label="Weight" name="severity" chosen={filters.severity} choices={SEVERITIES} />
    <Time label="From (UTC)" name="since" at={filters.since} />
    <Time label="To (UTC)" name="until" at={filters.until} />
    {filters.targetId !== '' && <input type="hidden" name="target_id" value={filters.targetId} />}
    <div class="actions">
      <button class="button" type="submit">
        Filter
      </button>
      {links.clear && (
        <a class="button button-plain" href={links.clear}>
          Clear
        </a>
      )}
    </div>
  </form>
)

const SEVERITIES = ['info', 'notice', 'warning'].map((name) => ({ id: name, name }))

interface SelectProps {
  label: string
  name: string
  chosen: string
  choices: readonly { id: string; name: string }[]
}

/** What the URL asks for and the list has not stays chosen. */
const Select: FC<SelectProps> = ({ label, name, chosen, choices }) => (
  <label class="field">
    <span class="field-label">{label}</span>
    <select name={name}>
      <option value="">Any</option>
      {chosen !== '' && !choices.some(({ id }) => id === chosen) && (
        <option value={chosen} selected>
          {chosen}
        </option>
      )}
      {choices.map((choice) => (
        <option value={choice.id} selected={choice.id === chosen}>
          {choice.name}
        </option>
      ))}
    </select>
  </label>
)

const Time: FC<{ label: string; name: string; at: string }> = ({ label, name, at }) => (
  <label class="field">
    <span class="field-label">{label}</span>
    <input type="datetime-local" step="1" name={name} value={at.slice(0, 19)} />
  </label>
)

const TONES = { info: 'idle', notice: 'good', warning: 'wait' } as const

const Entry: FC<AuditEntry> = ({ timestamp, action, severity, actor, target, actorIp, details }) => (
  <li class="audit-entry">
    <time class="muted" datetime={timestamp}>
      {timestamp.slice(0, 10)} {timestamp.slice(11, 19)}
    </time>
    <div class="audit-what">
      <p>
        <strong>{eventText(action)}</strong>
        <span class={`tag audit-weight tone-${TONES[severity]}`}>{severity}</span>
        {target && (
          <a class="small" href={`/audit?target_id=${encodeURIComponent(target.id)}`}>
            {target.id}
          </a>
        )}
      </p>
      {details && Object.keys(details).length > 0 && (
        <details>
          <summary class="reveal small">Details</summary>
          <pre class="audit-details">{JSON.stringify(details, null, 2)}</pre>
        </details>
      )}
    </div>
    <p class="audit-who">
      {actor.username ?? actor.userId}
      <span class="hint">
        {[actor.roleSlug, actor.authMethod?.replaceAll('_', ' '), actorIp].filter(Boolean).join(' · ')}
      </span>
    </p>
  </li>
)

/** `api_key_created` → "API key created". */
const eventText = (name: string): string => {
  const text = name
    .replaceAll('_', ' ')
    .replace(/\bapi\b/, 'API')
    .replace(/\btotp\b/, 'two-factor')
  return text.charAt(0).toUpperCase() + text.slice(1)
}
