/** How full an account is, how it got there, what it was spent on, and what could reset it. */
import type { FC } from 'hono/jsx'
import type { AccountSpend, Spend, Trend } from '../../src/model/account-trends.ts'
import type { WireAccount } from '../../src/model/account-view.ts'
import type { ResetCreditsView } from '../../src/model/reset-credits.ts'
import { LABELS, WINDOWS } from '../account-list.tsx'
import { costText } from '../request-list.tsx'
import { Meter } from '../ui/meter.tsx'
import { Since } from '../ui/time.tsx'
import { ResetCreditsCard } from './reset-credits.tsx'
import { TrendChart } from './trend.tsx'

export interface UsageProps {
  /** Credits of each window: left, and of how many; null: the plan has none, or nothing was reported. */
  credits: Record<(typeof WINDOWS)[number], { left: number; capacity: number } | null>
  trend: Trend
  /** `byKey` is null for those who may not know the keys. */
  spend: Omit<AccountSpend, 'byKey'> & { byKey: AccountSpend['byKey'] | null }
  /** null: the upstream was not asked yet. */
  resetCredits: ResetCreditsView | null
  /** Why none can be used; null: one can. */
  resetRefusal: string | null
  /** Makes the button one redemption, however often it is pressed. */
  redeemRequestId: string
}

type Props = UsageProps & { account: WireAccount; now: string }

export const UsageTab: FC<Props> = (props) => {
  const { account, trend, spend, now } = props
  return (
    <>
      <section class="card" aria-labelledby="windows-title">
        <header class="card-head">
          <h2 id="windows-title">Allowance</h2>
          {account.usageAt && (
            <span class="muted small">
              reported <Since at={account.usageAt} now={now} />
            </span>
          )}
        </header>
        <div class="card-body">
          <AllWindows {...props} />
        </div>
      </section>
      <section class="card" aria-labelledby="trend-title">
        <header class="card-head">
          <h2 id="trend-title">Last seven days</h2>
          <span class="muted small">percent used</span>
        </header>
        <div class="card-body">
          <TrendChart from={trend.from} series={WINDOWS.map((name) => ({ name: LABELS[name], values: trend[name] }))} />
        </div>
      </section>
      <section class="card" aria-labelledby="spend-title">
        <header class="card-head">
          <h2 id="spend-title">Spent in seven days</h2>
          <span class="muted small">{totalText(spend.total)}</span>
        </header>
        <SpendTables spend={spend} />
      </section>
      <ResetCreditsCard {...props} />
    </>
  )
}

const AllWindows: FC<Props> = ({ account, credits, now }) => {
  const reported = WINDOWS.filter((name) => account.windows[name])
  if (reported.length === 0) return <p class="muted">The service has not reported any window of this account yet.</p>
  return (
    <>
      {reported.map((name) => {
        const window = account.windows[name]
        return (
          window && (
            <div class="window-row">
              <Meter label={LABELS[name]} window={window} now={now} />
              {credits[name] && (
                <span class="muted small">
                  {whole(credits[name].left)} of {whole(credits[name].capacity)} credits of the plan left
                </span>
              )}
            </div>
          )
        )
      })}
      <Balance account={account} />
    </>
  )
}

const Balance: FC<{ account: WireAccount }> = ({ account: { credits } }) => {
  if (!credits || (!credits.hasCredits && !credits.unlimited && !credits.balance)) return null
  const amount = credits.unlimited ? 'unlimited' : credits.balance === null ? 'some' : whole(credits.balance)
  return <p class="muted small">Bought credits: {amount}. They pay once a weekly or monthly window is full.</p>
}

const whole = (credits: number): string => credits.toLocaleString('en', { maximumFractionDigits: 0 })

const totalText = ({ requests, costMicros, unpriced }: Spend): string => {
  const cost = costText(costMicros)
  const gap = unpriced > 0 ? `, ${whole(unpriced)} without a known price` : ''
  return requests === 0 ? 'nothing' : `${whole(requests)} requests · ${cost}${gap}`
}

const SpendTables: FC<Pick<UsageProps, 'spend'>> = ({ spend: { byModel, byKey, total } }) =>
  total.requests === 0 ? (
    <p class="empty muted">This account served nothing in the last seven days.</p>
  ) : (
    <div class="spend">
      <SpendTable title="Model" rows={byModel} total={total} nobody="no model" />
      {byKey && <SpendTable title="Key" rows={byKey} total={total} nobody="no key, or a deleted one" />}
    </div>
  )

interface SpendProps {
  title: string
  rows: readonly Spend[]
  total: Spend
  nobody: string
}

const SpendTable: FC<SpendProps> = ({ title, rows, total, nobody }) => (
  <table class="plain-table">
    <thead>
      <tr>
        <th scope="col">{title}</th>
        <th scope="col" class="number">
          Requests
        </th>
        <th scope="col" class="number">
          Tokens
        </th>
        <th scope="col" class="number">
          Cost
        </th>
      </tr>
    </thead>
    <tbody>
      {rows.map((row) => (
        <tr>
          <th scope="row">
            {row.name ?? <span class="muted">{nobody}</span>}
            <ShareBar part={shareOf(row, total)} />
          </th>
          <td class="number" title={row.errors > 0 ? `${whole(row.errors)} failed` : undefined}>
            {whole(row.requests)}
          </td>
          <td class="number">{whole(row.tokens)}</td>
          <td class="number">{row.unpriced === row.requests ? '–' : costText(row.costMicros)}</td>
        </tr>
      ))}
    </tbody>
  </table>
)

/** By cost; by tokens where nothing has a price. */
const shareOf = (row: Spend, total: Spend): number =>
  total.costMicros > 0 ? row.costMicros / total.costMicros : row.tokens / Math.max(1, total.tokens)

const ShareBar: FC<{ part: number }> = ({ part }) => (
  <svg class="share" viewBox="0 0 100 3" preserveAspectRatio="none" aria-hidden="true">
    <rect class="bar-track" width="100" height="3" />
    <rect class="share-fill" width={String(Math.round(part * 10_000) / 100)} height="3" />
  </svg>
)
