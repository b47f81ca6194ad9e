/** The remaining quota of all accounts, and each account's use, state and recent history. */
import type { FC } from 'hono/jsx'
import type { AccountView } from '../../src/model/accounts/account-view.ts'
import { STATE_NAMES, windowLabel } from '../../src/model/accounts/account-words.ts'
import type { WindowLength } from '../../src/model/accounts/usage-windows.ts'
import type { Outcome } from '../../src/model/overview/outcome-strip.ts'
import type { Period } from '../../src/model/overview/overview-slots.ts'
import type { PoolMeter as PoolMeterData } from '../../src/model/overview/pool-meters.ts'
import { countText } from '../ui/amounts.ts'
import { StateBadge } from '../ui/badge.tsx'
import { Card } from '../ui/card.tsx'
import { Bar, leftPercent } from '../ui/meter.tsx'
import { ClockTime, spanText, Until } from '../ui/time.tsx'
import { OutcomeCell, OutcomeStrip } from './charts.tsx'
import { PERIOD_NAMES } from './periods.ts'

export interface PoolPart {
  meters: (Omit<PoolMeterData, 'resetAt' | 'usedUpAt'> & { resetAt: string | null; usedUpAt: string | null })[]
  total: number
  /** Whether any account is available now. */
  isServing: boolean
  /** All accounts; if there are many, those that need attention or are used most. */
  accounts: PoolAccount[]
  /** Length of a strip's cells, and how many the axis shows. */
  slotMs: number
  cells: number
}

export interface PoolAccount
  extends Pick<AccountView, 'accountId' | 'displayName' | 'planType' | 'status' | 'eligible' | 'why' | 'inFlight'> {
  until: string | null
  /** When an account whose block has no known end is checked again. */
  nextCheckAt: string | null
  /** Percent used; null: not reported. */
  used: Record<WindowLength, number | null>
  /** One per slot of the period since the first request, oldest first. */
  strip: Outcome[]
}

type PoolProps = PoolPart & {
  /** ISO 8601: when the page was made. */
  at: string
  period: Period
}

export const OverviewPoolPart: FC<PoolProps> = ({ at, meters, isServing, ...strips }) => (
  <div id="overview-pool" class="stack overview-gap">
    {meters.length > 0 && (
      <section class="pool-meters" aria-label="Remaining quota">
        {meters.map((meter) => (
          <PoolMeter meter={meter} isServing={isServing} now={at} />
        ))}
      </section>
    )}
    {strips.total > 0 && <AccountStrips {...strips} now={at} />}
  </div>
)

const credits = (amount: number): string => countText(Math.round(amount))

interface MeterProps {
  meter: PoolPart['meters'][number]
  isServing: boolean
  now: string
}

const PoolMeter: FC<MeterProps> = ({ meter, isServing, now }) => (
  <div class="card pool-meter">
    <p class="pool-meter-head">
      <span class="pool-meter-name">{windowLabel(meter.window)}</span>
      <strong>{leftPercent(meter.usedPercent)} % left</strong>
      <span class="muted">
        {credits(meter.capacityCredits - meter.usedCredits)} of {credits(meter.capacityCredits)} credits
      </span>
    </p>
    <Bar label={`${windowLabel(meter.window)}, all accounts`} used={meter.usedPercent} pace={meter.pacePercent} />
    <p class="pool-meter-foot muted">
      <Outlook meter={meter} isServing={isServing} now={now} />
      {meter.resetAt && (
        <span>
          next reset <Until at={meter.resetAt} now={now} />
        </span>
      )}
    </p>
  </div>
)

const Outlook: FC<MeterProps> = ({ meter, isServing, now }) => {
  if (meter.usedPercent >= 100) return <span class="outlook-bad">used up</span>
  if (!isServing) return <span class="outlook-bad">no account is available</span>
  if (meter.usedUpAt)
    return (
      <span class="outlook-bad">
        on pace to run out at <ClockTime at={meter.usedUpAt} now={now} /> (<Until at={meter.usedUpAt} now={now} />)
      </span>
    )
  return meter.pacePercent === null ? <span /> : <span>on pace to last until the reset</span>
}

type StripsProps = Pick<PoolProps, 'accounts' | 'total' | 'slotMs' | 'cells' | 'period'> & { now: string }

const AccountStrips: FC<StripsProps> = ({ accounts, total, now, ...axis }) => (
  <Card id="strips" title="Accounts" count={total} aside={<StripLegend period={axis.period} />}>
    <ul>
      {accounts.map((account) => (
        <StripRow account={account} now={now} {...axis} />
      ))}
    </ul>
    {accounts.length < total && (
      <p class="card-foot">
        <a href="/accounts">All {total} accounts</a>{' '}
        <span class="muted">· showing those that need attention or are most used</span>
      </p>
    )}
  </Card>
)

type StripProps = Pick<StripsProps, 'slotMs' | 'cells' | 'period' | 'now'> & { account: PoolAccount }

const StripRow: FC<StripProps> = ({ account, now, slotMs, cells, period }) => (
  <li class="strip-row" id={`strip-${account.accountId}`}>
    <a class="strip-name" href={`/accounts/${account.accountId}`}>
      {account.displayName}
    </a>
    <span class="strip-state">
      <StateBadge status={account.status} />
      <span class="muted">
        <Standing account={account} now={now} />
      </span>
    </span>
    <span class="strip-bars">
      <UsedBars used={account.used} />
    </span>
    <OutcomeStrip
      strip={account.strip}
      cells={cells}
      label={`Last ${PERIOD_NAMES[period]}: ${inWords(account.strip, slotMs)}`}
    />
  </li>
)

const Standing: FC<{ account: PoolAccount; now: string }> = ({ account, now }) => {
  const { eligible, inFlight, until, nextCheckAt, status, why } = account
  if (eligible) return <>{inFlight > 0 ? `${inFlight} running` : 'available'}</>
  const comesBack = until ?? nextCheckAt
  if (!comesBack) return <>not available</>
  // The badge says why in other states, and here where the words are the same.
  const says = (status === 'quota_exceeded' || status === 'active') && why !== STATE_NAMES[status] && why
  return (
    <>
      {says && `${says} · `}
      {until ? 'back' : 'next check'} <Until at={comesBack} now={now} />
    </>
  )
}

const UsedBars: FC<Pick<PoolAccount, 'used'>> = ({ used: { fiveHour, weekly, monthly } }) => {
  const bars = [
    ['fiveHour', '5h', fiveHour],
    ['weekly', 'wk', weekly],
    ['monthly', 'mo', monthly],
  ] as const
  const known = bars.filter(([, , used]) => used !== null)
  if (known.length === 0) return <span class="muted">no usage reported yet</span>
  return known.map(([window, short, used]) => (
    <span class="strip-bar">
      <span class="muted" aria-hidden="true">
        {short}
      </span>
      <Bar label={windowLabel(window)} used={used ?? 0} />
      <span class="strip-percent">{leftPercent(used ?? 0)} % left</span>
    </span>
  ))
}

const WORDS: Record<Outcome, string> = {
  ok: 'no errors',
  some_errors: 'some errors',
  blocked: 'not available',
  idle: 'idle',
}

const inWords = (strip: readonly Outcome[], slotMs: number): string =>
  (['ok', 'some_errors', 'blocked', 'idle'] as const)
    .map((outcome) => [strip.filter((one) => one === outcome).length, WORDS[outcome]] as const)
    .filter(([slots]) => slots > 0)
    .map(([slots, word]) => `${spanText(slots * slotMs)} ${word}`)
    .join(', ')

const StripLegend: FC<{ period: Period }> = ({ period }) => (
  <span class="strip-legend muted">
    <span>last {PERIOD_NAMES[period]}</span>
    {(['ok', 'some_errors', 'blocked', 'idle'] as const).map((outcome) => (
      <span class="strip-key">
        <OutcomeCell outcome={outcome} /> {WORDS[outcome]}
      </span>
    ))}
  </span>
)
