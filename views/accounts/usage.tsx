/** Quota of an account, its trend, what it was used for, and its reset credits. */
import type { FC } from 'hono/jsx'
import type { AccountSpend, Spend, Trend } from '../../src/model/accounts/account-trends.ts'
import type { WireAccount } from '../../src/model/accounts/account-view.ts'
import { windowLabel } from '../../src/model/accounts/account-words.ts'
import type { ResetCreditsView } from '../../src/model/accounts/reset-credits.ts'
import { countText, dollarText, plural, shortCount } from '../ui/amounts.ts'
import { Card, TextCard } from '../ui/card.tsx'
import { LivePart } from '../ui/live.tsx'
import { Meter, ShareBar } from '../ui/meter.tsx'
import { TableHead } from '../ui/table.tsx'
import { Since } from '../ui/time.tsx'
import { paidCreditsText, WINDOWS } from './availability.tsx'
import { accountPath } from './links.ts'
import { ResetCreditsCard } from './reset-credits.tsx'
import type { ResetRuleProps } from './reset-rule.tsx'
import { TrendChart } from './trend.tsx'
import { WindowCard, type WindowProps } from './window-card.tsx'

export interface UsageProps {
  /** Credits left in each window, and their total; null: the plan has none, or nothing was reported. */
  credits: Record<(typeof WINDOWS)[number], { left: number; capacity: number } | null>
  trend: Trend
  /** `byKey` is null for users who may not see keys. */
  spend: Omit<AccountSpend, 'byKey'> & { byKey: AccountSpend['byKey'] | null }
  /** null: not fetched yet. */
  resetCredits: ResetCreditsView | null
  /** Why none can be used; null: one can. */
  resetRefusal: string | null
  /** Repeated submissions of the form redeem once. */
  redeemRequestId: string
  window: WindowProps
  resetRule: ResetRuleProps
}

type Props = UsageProps & { account: WireAccount; now: string }

export const UsageTab: FC<Props> = (props) => {
  const { account, trend, spend, now } = props
  return (
    <>
      <LivePart id="allowance" topics={['accounts', 'usage']} src={accountPath(account.accountId)}>
        <TextCard id="windows" title="Quota" count={account.usageAt && <Reported at={account.usageAt} now={now} />}>
          <AllWindows {...props} />
        </TextCard>
      </LivePart>
      <TextCard id="trend" title="Last 7 days" count="percent used">
        <TrendChart
          from={trend.from}
          series={WINDOWS.map((name) => ({ name: windowLabel(name), values: trend[name] }))}
        />
      </TextCard>
      <Card id="spend" title="Usage in the last 7 days" count={totalText(spend.total)}>
        <SpendTables spend={spend} />
      </Card>
      <WindowCard {...props.window} account={account} />
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
    return <p class="muted">ChatGPT has not reported any quota for this account yet.</p>
  return (
    <>
      {WINDOWS.map((name) => {
        const window = account.windows[name]
        return (
          window && (
            <div class="window-row">
              <Meter label={windowLabel(name)} window={window} now={now} />
              {credits[name] && (
                <span class="muted small">
                  {whole(credits[name].left)} of {whole(credits[name].capacity)} plan credits left
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
      {paidCreditsText(account) ?? `Paid credits: ${amount}. They are used once the weekly or monthly quota is used up`}
      .
    </p>
  )
}

const whole = (credits: number): string => countText(Math.round(credits))

const totalText = ({ requests, costMicros, unpriced }: Spend): string => {
  const gap = unpriced > 0 ? `, ${countText(unpriced)} without a known price` : ''
  return requests === 0 ? 'no requests' : `${plural(requests, 'request')} · ${dollarText(costMicros / 1e6)}${gap}`
}

const SpendTables: FC<Pick<UsageProps, 'spend'>> = ({ spend: { byModel, byKey, total } }) =>
  total.requests === 0 ? (
    <p class="empty muted">No requests in the last 7 days.</p>
  ) : (
    <div class="spend">
      <SpendTable title="Model" rows={byModel} total={total} unnamed="no model" />
      {byKey && <SpendTable title="Key" rows={byKey} total={total} unnamed="no key, or a deleted key" />}
    </div>
  )

interface SpendProps {
  title: string
  rows: readonly Spend[]
  total: Spend
  unnamed: string
}

const SpendTable: FC<SpendProps> = ({ title, rows, total, unnamed }) => (
  <table class="figures">
    <TableHead texts={[title]} numbers={['Requests', 'Tokens', 'Cost']} />
    <tbody>
      {rows.map((row) => (
        <tr>
          <th scope="row">
            {row.name ?? <span class="muted">{unnamed}</span>}
            <ShareBar {...getShare(row, total)} />
          </th>
          <td title={row.errors > 0 ? `${countText(row.errors)} failed` : undefined}>{countText(row.requests)}</td>
          <td>{shortCount(row.tokens)}</td>
          <td>{row.unpriced === row.requests ? '–' : dollarText(row.costMicros / 1e6)}</td>
        </tr>
      ))}
    </tbody>
  </table>
)

/** By cost, or by tokens if nothing has a price. */
const getShare = (row: Spend, total: Spend): { percent: number; of: string } =>
  total.costMicros > 0
    ? { percent: (row.costMicros / total.costMicros) * 100, of: 'the cost' }
    : { percent: (row.tokens / Math.max(1, total.tokens)) * 100, of: 'the tokens' }
