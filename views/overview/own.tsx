/** The overview of users who see only their own keys. */
import type { FC } from 'hono/jsx'
import type { ApiKey } from '../../src/model/keys/api-key-view.ts'
import type { KeyState } from '../../src/model/keys/key-list.ts'
import type { ReportBars } from '../../src/model/reports/report-bars.ts'
import type { Report } from '../../src/model/reports/reports.ts'
import { LimitBars } from '../keys/limits.tsx'
import { KeyBadge } from '../keys/list.tsx'
import { getCost, tokens } from '../reports/amounts.ts'
import { countText, plural, shortCount } from '../ui/amounts.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Chart } from '../ui/chart.tsx'
import { KeyIcon } from '../ui/icons.tsx'
import { live } from '../ui/live.tsx'
import { localTimes } from '../ui/local-time.ts'
import { Meter } from '../ui/meter.tsx'
import { TableHead } from '../ui/table.tsx'
import { Since } from '../ui/time.tsx'

export type OwnRange = 'today' | '7d' | '30d'

export interface OwnOverview {
  generatedAt: string
  range: OwnRange
  timezone: string
  summary: Report['summary']
  comparison: Report['comparison']
  chart: ReportBars
  keys: (ApiKey & { state: KeyState })[]
  /** What the pool has left in each window, in percent; null: hidden, or no usage is known. */
  pool: PoolLeft[] | null
  canCreate: boolean
}

export interface PoolLeft {
  window: '5h' | '7d' | 'monthly'
  remainingPercent: number
  /** ISO 8601 */
  resetAt: string | null
}

const RANGES: Record<OwnRange, string> = { today: 'Today', '7d': '7 days', '30d': '30 days' }

const getHref = (range: string): string => `/dashboard?range=${range}`

export const OwnOverviewPage: FC<OwnOverview> = (props) => {
  const { generatedAt, range, keys, pool, canCreate } = props
  const place = live({ id: 'own-overview', topics: ['keys', 'logs', 'minute', 'settings'], src: getHref(range) })
  return (
    <div class="page own-overview" data-now={generatedAt} {...place}>
      <header class="page-head page-head-actions">
        <h1>Your usage</h1>
        <nav class="periods" aria-label="Range">
          {Object.entries(RANGES).map(([name, label]) => (
            <a href={getHref(name)} aria-current={name === range ? 'true' : undefined}>
              {label}
            </a>
          ))}
        </nav>
        {canCreate && keys.length > 0 && <ButtonLink href="/keys/new">Create key</ButtonLink>}
      </header>
      {keys.length === 0 ? <NoKeys canCreate={canCreate} /> : <Figures {...props} />}
      {pool && <Pool pool={pool} now={generatedAt} />}
    </div>
  )
}

const NoKeys: FC<{ canCreate: boolean }> = ({ canCreate }) => (
  <section class="card empty">
    <KeyIcon />
    <h2>No keys yet</h2>
    {canCreate ? (
      <>
        <p>Create a key to connect Codex, an SDK or another client.</p>
        <ButtonLink isMain href="/keys/new">
          Create key
        </ButtonLink>
      </>
    ) : (
      <p>Ask an administrator for a key.</p>
    )}
  </section>
)

const Figures: FC<OwnOverview> = ({ summary, keys, chart, timezone, generatedAt }) => (
  <>
    <dl class="report-tiles">
      <Tile name="Requests" value={countText(summary.requests)} note={errorText(summary)} />
      <Tile name="Tokens" value={shortCount(tokens(summary))} note={cachedText(summary)} />
      <Tile name="Cost" value={getCost(summary)} note="estimated at list prices" />
    </dl>
    <Card
      id="own-keys"
      title="Your keys"
      count={keys.length}
      aside={
        <a class="card-link" href="/keys">
          All keys
        </a>
      }
    >
      <ul class="own-keys">
        {keys.slice(0, MAX_KEYS).map((key) => (
          <li>
            <span class="own-key">
              <a class="key-name" href={`/keys/${key.id}`}>
                {key.name}
              </a>
              <KeyBadge state={key.state} />
            </span>
            <LimitBars limits={key.limits} />
            <span class="muted small">
              {plural(key.usageSummary.requestCount, 'request')} all time ·{' '}
              {key.lastUsedAt ? (
                <>
                  last used <Since at={key.lastUsedAt} now={generatedAt} />
                </>
              ) : (
                'never used'
              )}
            </span>
          </li>
        ))}
      </ul>
    </Card>
    {summary.requests > 0 && <RequestChart chart={chart} timezone={timezone} />}
  </>
)

const MAX_KEYS = 8

const Tile: FC<{ name: string; value: string; note: string | null }> = ({ name, value, note }) => (
  <div class="card report-tile">
    <dt>{name}</dt>
    <dd class="report-value">{value}</dd>
    {note && <dd class="small muted">{note}</dd>}
  </div>
)

const errorText = ({ errors, cancelled }: OwnOverview['summary']): string =>
  `${plural(errors, 'error')}, ${countText(cancelled)} cancelled`

const cachedText = ({ inputTokens, cachedInputTokens }: OwnOverview['summary']): string | null =>
  inputTokens === 0 ? null : `${Math.round((cachedInputTokens / inputTokens) * 100)} % of input cached`

const RequestChart: FC<Pick<OwnOverview, 'chart' | 'timezone'>> = ({ chart: { bars, ticks }, timezone }) => {
  const timeOf = localTimes(timezone, 'moment')
  const answered = ({ sums }: OwnOverview['chart']['bars'][number]) => sums.requests - sums.errors - sums.cancelled
  return (
    <TextCard id="requests" title="Requests">
      <Chart
        label="Your requests by result. The table below has the figures."
        cells={bars.length}
        ticks={ticks}
        scale={shortCount}
        layers={[
          { name: 'Answered', kind: 'ok', values: bars.map(answered) },
          { name: 'Cancelled by the client', kind: 'cancelled', values: bars.map(({ sums }) => sums.cancelled) },
          { name: 'Errors', kind: 'error', values: bars.map(({ sums }) => sums.errors) },
        ]}
      >
        <table class="figures">
          <TableHead texts={['From']} numbers={['Answered', 'Cancelled', 'Errors']} />
          <tbody>
            {bars.toReversed().map((bar) => (
              <tr>
                <th>
                  <a href={`/logs?since=${bar.from.slice(0, 19)}Z&until=${bar.to.slice(0, 19)}Z`}>{timeOf(bar.from)}</a>
                </th>
                <td>{countText(answered(bar))}</td>
                <td>{countText(bar.sums.cancelled)}</td>
                <td>{countText(bar.sums.errors)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Chart>
    </TextCard>
  )
}

const WINDOWS: Record<PoolLeft['window'], { name: string; minutes: number }> = {
  '5h': { name: '5 hours', minutes: 300 },
  '7d': { name: 'Weekly', minutes: 10_080 },
  monthly: { name: 'Monthly', minutes: 43_200 },
}

/** What the pool has left, without saying of which accounts it consists. */
export const Pool: FC<{ pool: readonly PoolLeft[]; now: string }> = ({ pool, now }) => (
  <TextCard id="pool" title="Left in the pool" help="pool-left">
    <div class="pool-left">
      {pool.map(({ window, remainingPercent, resetAt }) => (
        <Meter
          label={WINDOWS[window].name}
          window={{ usedPercent: 100 - remainingPercent, resetAt, windowMinutes: WINDOWS[window].minutes }}
          now={now}
        />
      ))}
    </div>
  </TextCard>
)
