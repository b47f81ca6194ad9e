/** How full an account is, how it got there, what it was spent on, and what could reset it. */
import type { FC } from 'hono/jsx'
import type { AccountSpend, Spend, Trend } from '../../src/model/account-trends.ts'
import type { WireAccount } from '../../src/model/account-view.ts'
import type { ResetCreditsView } from '../../src/model/reset-credits.ts'
import { countText, dollarText, plural, shortCount } from '../ui/amounts.ts'
import { Card, TextCard } from '../ui/card.tsx'
import { LivePart } from '../ui/live.tsx'
import { Meter, ShareBar } from '../ui/meter.tsx'
import { TableHead } from '../ui/table.tsx'
import { Since } from '../ui/time.tsx'
import { accountPath } from './links.ts'
import { ResetCreditsCard } from './reset-credits.tsx'
import { paidCreditsText, WINDOW_NAMES, WINDOWS } from './standing.tsx'
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
      <LivePart id="allowance" topics={['accounts', 'usage']} src={accountPath(account.accountId)}>
        <TextCard id="windows" title="Allowance" count={account.usageAt && <Reported at={account.usageAt} now={now} />}>
          <AllWindows {...props} />
        </TextCard>
      </LivePart>
      <TextCard id="trend" title="Last seven days" count="percent used">
        <TrendChart
          from={trend.from}
          series={WINDOWS.map((name) => ({ name: WINDOW_NAMES[name], values: trend[name] }))}
        />
      </TextCard>
      <Card id="spend" title="Spent in seven days" count={totalText(spend.total)}>
        <SpendTables spend={spend} />
      </Card>
      <ResetCreditsCard {...props} />
    </>
  )
}

const Reported: FC<{ at: string; now: string }> = ({ at, now }) => (
  <>
    reported <Since at={at} now={now} />
  </>
)

const AllWindows: FC<Props> = ({ account, credits, now }) => {
  if (WINDOWS.every((name) => !account.windows[name]))
    return <p class="muted">The service has not reported any window of this account yet.</p>
  return (
    <>
      {WINDOWS.map((name) => {
        const window = account.windows[name]
        return (
          window && (
            <div class="window-row">
              <Meter label={WINDOW_NAMES[name]} window={window} now={now} />
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

const Balance: FC<{ account: WireAccount }> = ({ account }) => {
  const { credits } = account
  if (!credits || (!credits.hasCredits && !credits.unlimited && !credits.balance)) return null
  const amount = credits.unlimited ? 'unlimited' : credits.balance === null ? 'some' : whole(credits.balance)
  return (
    <p class="muted small">
      {paidCreditsText(account) ?? `Paid credits: ${amount}. They pay once a weekly or monthly window is full`}.
    </p>
  )
}

const whole = (credits: number): string => countText(Math.round(credits))

const totalText = ({ requests, costMicros, unpriced }: Spend): string => {
  const gap = unpriced > 0 ? `, ${countText(unpriced)} without a known price` : ''
  return requests === 0 ? 'nothing' : `${plural(requests, 'request')} · ${dollarText(costMicros / 1e6)}${gap}`
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
  <table class="figures">
    <TableHead texts={[title]} numbers={['Requests', 'Tokens', 'Cost']} />
    <tbody>
      {rows.map((row) => (
        <tr>
          <th scope="row">
            {row.name ?? <span class="muted">{nobody}</span>}
            <ShareBar {...shareOf(row, total)} />
          </th>
          <td title={row.errors > 0 ? `${countText(row.errors)} failed` : undefined}>{countText(row.requests)}</td>
          <td>{shortCount(row.tokens)}</td>
          <td>{row.unpriced === row.requests ? '–' : dollarText(row.costMicros / 1e6)}</td>
        </tr>
      ))}
    </tbody>
  </table>
)

/** By cost; by tokens where nothing has a price. */
const shareOf = (row: Spend, total: Spend): { percent: number; of: string } =>
  total.costMicros > 0
    ? { percent: (row.costMicros / total.costMicros) * 100, of: 'the cost' }
    : { percent: (row.tokens / Math.max(1, total.tokens)) * 100, of: 'the tokens' }
