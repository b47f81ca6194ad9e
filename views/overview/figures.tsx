/** The totals of a period: six tiles, a chart of requests, and errors. */
import type { FC } from 'hono/jsx'
import type { Chart as ChartData } from '../../src/model/overview/overview-chart.ts'
import type { Period } from '../../src/model/overview/overview-slots.ts'
import type { Tile, Tiles } from '../../src/model/overview/overview-tiles.ts'
import { countText, dollarText, shortCount } from '../ui/amounts.ts'
import { TextCard } from '../ui/card.tsx'
import { Chart } from '../ui/chart.tsx'
import { localTimes } from '../ui/local-time.ts'
import { TableHead } from '../ui/table.tsx'
import { durationText } from '../ui/time.tsx'
import { Sparkline } from './charts.tsx'
import { LastErrors, type ShownErrors } from './errors.tsx'
import { PERIOD_NAMES } from './periods.ts'

export interface FiguresPart {
  tiles: Tiles
  /** null: there was no request yet. */
  chart: ChartData | null
  /** Grouped by cause, newest first. */
  errors: ShownErrors[]
}

interface InPeriod {
  period: Period
  /** ISO 8601: when the page was made. */
  at: string
}

export const OverviewFiguresPart: FC<FiguresPart & InPeriod> = ({ tiles, chart, errors, period, at }) => (
  <div id="overview-figures" class="stack overview-gap">
    <TileRow tiles={tiles} period={period} />
    {chart && <RequestChart chart={chart} period={period} />}
    <LastErrors errors={errors} now={at} period={period} hasRequests={(tiles.requests.value ?? 0) > 0} />
  </div>
)

const TileRow: FC<{ tiles: Tiles; period: Period }> = ({ tiles, period }) => (
  <section class="tiles" aria-label={`Last ${PERIOD_NAMES[period]}`}>
    <TileCard label="Requests" tile={tiles.requests} text={shortCount} />
    <TileCard
      label="Tokens"
      tile={tiles.tokens}
      text={shortCount}
      more={tiles.cachedPercent === null ? null : `${Math.round(tiles.cachedPercent)} % of input cached`}
    />
    <TileCard label="Cost" tile={tiles.cost} text={(micros) => dollarText(micros / 1e6)} />
    <TileCard
      label="Error rate"
      tile={tiles.errorRate}
      text={percent}
      unit="points"
      tone={errorTone(tiles.errorRate.value)}
    />
    <TileCard
      label="First token"
      tile={tiles.firstToken}
      text={durationText}
      more={tiles.firstTokenP95Ms === null ? null : `p95 ${durationText(tiles.firstTokenP95Ms)}`}
    />
    <TileCard label="Conversations" tile={tiles.conversations} text={shortCount} more="in the last hour" />
  </section>
)

/** Percent of the requests. */
const HIGH_ERROR_RATE = 20
const RAISED_ERROR_RATE = 5

const errorTone = (rate: number | null): TileProps['tone'] => {
  if (rate === null || rate < RAISED_ERROR_RATE) return undefined
  return rate >= HIGH_ERROR_RATE ? 'bad' : 'wait'
}

interface TileProps {
  label: string
  tile: Tile
  text: (value: number) => string
  more?: string | null
  /** Unit of a change: percent, or points of a rate. */
  unit?: 'percent' | 'points'
  tone?: 'wait' | 'bad'
}

const TileCard: FC<TileProps> = ({ label, tile, text, more = null, unit = 'percent', tone }) => {
  const change = changeText(tile, unit)
  return (
    <div class={tone ? `card tile tile-toned tone-${tone}` : 'card tile'}>
      <h2 class="tile-label">{label}</h2>
      <p class="tile-value">{tile.value === null ? '–' : text(tile.value)}</p>
      <p class="tile-more muted">
        {more && <span>{more}</span>}
        {change && <span title="Compared with the same time before">{change}</span>}
      </p>
      <Sparkline series={tile.series} label={`${label} over time`} />
    </div>
  )
}

/** Null without a meaningful comparison. */
const changeText = ({ ended, before }: Tile, unit: TileProps['unit']): string | null => {
  if (ended === null || before === null) return null
  const change = unit === 'points' ? ended - before : before === 0 ? null : ((ended - before) / before) * 100
  if (change === null || Math.abs(change) >= 1000) return null
  const amount = unit === 'points' ? change.toFixed(1) : change.toFixed(0)
  if (Number(amount) === 0) return 'no change'
  return `${change > 0 ? '▲' : '▼'} ${amount.replace('-', '')} ${unit === 'points' ? 'points' : '%'}`
}

const percent = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} %`

const RequestChart: FC<{ chart: ChartData; period: Period }> = ({ chart, period }) => {
  const { bars, cells, ticks, zone } = chart
  const timeOf = localTimes(zone, period === '1h' || period === '24h' ? 'time' : 'moment')
  return (
    <TextCard id="requests" title="Requests" count={`last ${PERIOD_NAMES[period]}`}>
      <Chart
        label={`Requests of the last ${PERIOD_NAMES[period]} by result. The table below has the figures.`}
        cells={cells}
        ticks={ticks}
        scale={shortCount}
        layers={[
          { name: 'Answered', kind: 'ok', values: bars.map(({ answered }) => answered) },
          {
            name: 'Cancelled by the client',
            kind: 'cancelled',
            values: bars.map(({ cancelled }) => cancelled),
            href: `/logs?status=cancelled&range=${period}`,
          },
          {
            name: 'Errors',
            kind: 'error',
            values: bars.map(({ errors }) => errors),
            href: `/logs?status=failed&range=${period}`,
          },
        ]}
      >
        <table class="figures">
          <TableHead texts={['From']} numbers={['Answered', 'Cancelled', 'Errors']} />
          <tbody>
            {bars.toReversed().map(({ from, to, answered, cancelled, errors }) => (
              <tr>
                <th>
                  <a href={`/logs?since=${from.slice(0, 19)}Z&until=${to.slice(0, 19)}Z`}>{timeOf(from)}</a>
                </th>
                <td>{countText(answered)}</td>
                <td>{countText(cancelled)}</td>
                <td>{countText(errors)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Chart>
    </TextCard>
  )
}
