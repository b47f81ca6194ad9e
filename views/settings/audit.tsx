/** The audit log: who changed what, when and from where, and whether the log is intact. */
import type { FC } from 'hono/jsx'
import type { AuditEntry, AuditPage } from '../../src/model/audit/audit-log.ts'
import type { AuditVerdict } from '../../src/model/audit/audit-verify.ts'
import { countText, plural } from '../ui/amounts.ts'
import { CheckIcon, ClockIcon, WarningIcon } from '../ui/icons.tsx'
import { AgePager } from '../ui/pager.tsx'
import { type Choice, Filter, FilterActions, getOptions, type Option, plainOptions, TimeFilter } from '../ui/select.tsx'
import { Moment } from '../ui/time.tsx'
import { type Frame, SettingsFrame } from './frame.tsx'

export interface Audit extends Omit<AuditPage, 'items'> {
  items: NamedEntry[]
  frame: Frame
  now: string
  filters: AuditFilters
  options: { actions: string[]; targetTypes: readonly string[]; people: Choice[] }
  chain: Chain
  links: { older: string | null; newest: string | null; clear: string | null; verify: string }
}

export interface NamedEntry extends AuditEntry {
  actorName: string
  /** Current name of the target; null if deleted or hidden from the user. */
  targetName: string | null
}

/** `unchecked`: too many rows to verify with every page. */
export type Chain = AuditVerdict | { isWhole: null; rows: number }

/** As shown in the form. */
export interface AuditFilters {
  action: string
  actor: string
  targetType: string
  targetId: string
  severity: string
  since: string
  until: string
}

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
              {links.clear ? 'No entries match these filters. ' : 'No changes yet.'}
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

/** Each entry includes the hash of the previous one, so changed or removed entries are detected. */
const ChainLine: FC<{ chain: Chain; verify: string }> = ({ chain, verify }) => {
  if (chain.isWhole === null)
    return (
      <p class="chain tone-idle">
        <ClockIcon /> {countText(chain.rows)} entries, not verified yet. <a href={verify}>Verify the log</a>
      </p>
    )
  if (chain.isWhole)
    return (
      <p class="chain tone-good">
        <CheckIcon /> Verified: {wholeText(chain)}, unbroken chain.
      </p>
    )
  return (
    <p class="chain tone-bad" role="alert">
      <WarningIcon /> The log was tampered with{chain.rowId === null ? '' : ` at entry ${chain.rowId}`}: {chain.problem}
      .
    </p>
  )
}

const wholeText = ({ rows, unchained, purgedThroughId }: Extract<Chain, { isWhole: true }>): string =>
  [
    plural(rows, 'entry', 'entries'),
    ...(unchained > 0 ? [`${countText(unchained)} from before entries were hashed`] : []),
    ...(purgedThroughId === null ? [] : [`entries up to ${countText(purgedThroughId)} deleted by retention`]),
  ].join(', ')

const Filters: FC<Audit> = ({ filters, options, links }) => (
  <form class="card filter-card" method="get" action="/audit" data-auto>
    <div class="filter-row">
      <Filter label="Event" name="action" chosen={filters.action} options={options.actions.map(eventOption)} />
      <Filter label="User" name="actor_user_id" chosen={filters.actor} options={getOptions(options.people)} />
      <Filter
        label="Target"
        name="target_type"
        chosen={filters.targetType}
        options={options.targetTypes.map(eventOption)}
      />
      <Filter label="Severity" name="severity" chosen={filters.severity} options={SEVERITIES} />
      <TimeFilter label="From" name="since" at={filters.since} />
      <TimeFilter label="To" name="until" at={filters.until} />
      <FilterActions label="Filter" clear={links.clear} />
    </div>
    {filters.targetId !== '' && <input type="hidden" name="target_id" value={filters.targetId} />}
  </form>
)

const eventOption = (name: string): Option => [name, eventText(name)]

const SEVERITIES = plainOptions(['info', 'notice', 'warning'])

const TONES = { info: 'idle', notice: 'good', warning: 'wait' } as const

const Entry: FC<NamedEntry> = ({
  timestamp,
  action,
  severity,
  actor,
  actorName,
  target,
  targetName,
  actorIp,
  details,
}) => (
  <li class="audit-entry">
    <span class="muted">
      <Moment at={timestamp} />
    </span>
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
      {actorName}
      <span class="hint">{[actor.roleSlug, methodText(actor.authMethod), actorIp].filter(Boolean).join(' · ')}</span>
    </p>
  </li>
)

/** Those that repeat the actor are left out. */
const METHODS: Readonly<Record<string, string | null>> = {
  cli: null,
  disabled: null,
  guest: null,
  local_bootstrap: 'before the first password',
}

const methodText = (method: string | null): string | null =>
  method === null || method in METHODS ? (METHODS[method ?? ''] ?? null) : method.replaceAll('_', ' ')

/** Events whose name would be unclear. */
const EVENTS: Readonly<Record<string, string>> = {
  account_reactivated: 'Account resumed',
  account_reauthenticated: 'Account signed in again',
  api_key_regenerated: 'API key secret replaced',
  audit_purged: 'Old audit entries deleted',
  login_failed: 'Sign-in failed',
  login_success: 'Signed in',
  logout: 'Signed out',
  provider_updated: 'Sign-in provider updated',
  step_up_verified: 'Change confirmed',
  user_keys_deactivated: 'User keys turned off',
  user_keys_reactivated: 'User keys turned on',
}

/** `api_key_created` → "API key created". */
const eventText = (name: string): string => {
  const known = EVENTS[name]
  if (known !== undefined) return known
  const text = name
    .replaceAll('_', ' ')
    .replace(/\bapi\b/, 'API')
    .replace(/\btotp\b/, 'two-factor')
  return text.charAt(0).toUpperCase() + text.slice(1)
}
