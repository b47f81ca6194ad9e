/** The audit log: who changed what, when and from where, and whether the log is whole. */
import type { FC } from 'hono/jsx'
import type { Audit, Chain, NamedEntry } from '../../src/admin/audit-page.ts'
import { countText, plural } from '../ui/amounts.ts'
import { CheckIcon, ClockIcon, WarningIcon } from '../ui/icons.tsx'
import { AgePager } from '../ui/pager.tsx'
import { Filter, FilterActions, type Option, optionsOf, plainOptions, TimeFilter } from '../ui/select.tsx'
import { momentText } from '../ui/time.tsx'
import { SettingsFrame } from './frame.tsx'

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
          <ul>
            {items.map((entry) => (
              <Entry {...entry} />
            ))}
          </ul>
        )}
        <AgePager {...links} />
      </section>
    </SettingsFrame>
  )
}

/** Each row is hashed with the one before, so a row that was changed or taken out shows. */
const ChainLine: FC<{ chain: Chain; verify: string }> = ({ chain, verify }) => {
  if (chain.isWhole === null)
    return (
      <p class="chain tone-idle">
        <ClockIcon /> {countText(chain.rows)} rows, not checked just now.{' '}
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
    plural(rows, 'row'),
    ...(unchained > 0 ? [`${countText(unchained)} of them from before rows were hashed`] : []),
    ...(purgedThroughId === null ? [] : [`deleted by retention up to row ${countText(purgedThroughId)}`]),
  ].join(', ')

const Filters: FC<Audit> = ({ filters, options, links }) => (
  <form class="card filter-card" method="get" action="/audit" data-auto>
    <div class="filter-row">
      <Filter label="What" name="action" chosen={filters.action} options={options.actions.map(eventOption)} />
      <Filter label="Who" name="actor_user_id" chosen={filters.actor} options={optionsOf(options.people)} />
      <Filter
        label="About"
        name="target_type"
        chosen={filters.targetType}
        options={options.targetTypes.map(eventOption)}
      />
      <Filter label="Weight" name="severity" chosen={filters.severity} options={SEVERITIES} />
      <TimeFilter label="From (UTC)" name="since" at={filters.since} />
      <TimeFilter label="To (UTC)" name="until" at={filters.until} />
      <FilterActions label="Filter" clear={links.clear} />
    </div>
    {filters.targetId !== '' && <input type="hidden" name="target_id" value={filters.targetId} />}
  </form>
)

const eventOption = (name: string): Option => [name, eventText(name)]

const SEVERITIES = plainOptions(['info', 'notice', 'warning'])

const TONES = { info: 'idle', notice: 'good', warning: 'wait' } as const

const Entry: FC<NamedEntry> = ({ timestamp, action, severity, actor, target, targetName, actorIp, details }) => (
  <li class="audit-entry">
    <time class="muted" datetime={timestamp}>
      {momentText(timestamp)} UTC
    </time>
    <div class="audit-what">
      <p>
        <strong>{eventText(action)}</strong>
        <span class={`tag audit-weight tone-${TONES[severity]}`}>{severity}</span>
        {target && (
          <a class="small" href={`/audit?target_id=${encodeURIComponent(target.id)}`}>
            {targetName ?? target.id}
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
