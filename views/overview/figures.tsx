/** The last 24 hours in six numbers, and what failed last. */
import type { FC } from 'hono/jsx'
import type { FiguresPart } from '../../src/admin/overview.ts'
import type { Tile, Tiles } from '../../src/model/overview-tiles.ts'
import { RequestTable } from '../logs/rows.tsx'
import { dollarText, shortCount } from '../ui/amounts.ts'
import { Card } from '../ui/card.tsx'
import { durationText } from '../ui/time.tsx'
import { Sparkline } from './charts.tsx'

export const OverviewFiguresPart: FC<FiguresPart> = ({ generatedAt, tiles, errors }) => (
  <div
    id="overview-figures"
    class="stack overview-gap"
    data-now={generatedAt}
    data-live="minute"
    data-live-src="/dashboard/figures"
  >
    <TileRow tiles={tiles} />
    {errors.length === 0 ? <NoErrors tiles={tiles} /> : <LastErrors errors={errors} now={generatedAt} />}
  </div>
)

const TileRow: FC<{ tiles: Tiles }> = ({ tiles }) => (
  <section class="tiles" aria-label="Last 24 hours">
    <TileCard label="Requests" tile={tiles.requests} text={shortCount} />
    <TileCard
      label="Tokens"
      tile={tiles.tokens}
      text={shortCount}
      more={tiles.cachedPercent === null ? null : `${Math.round(tiles.cachedPercent)} % of input cached`}
    />
    <TileCard label="Cost" tile={tiles.cost} text={(micros) => dollarText(micros / 1e6)} />
    <TileCard label="Error rate" tile={tiles.errorRate} text={percent} unit="points" />
    <TileCard
      label="First token"
      tile={tiles.firstToken}
      text={durationText}
      more={tiles.firstTokenP95Ms === null ? null : `p95 ${durationText(tiles.firstTokenP95Ms)}`}
    />
    <TileCard label="Conversations" tile={tiles.conversations} text={shortCount} more="in the last hour" />
  </section>
)

interface TileProps {
  label: string
  tile: Tile
  text: (value: number) => string
  more?: string | null
  /** How a change is told: in percent of what was, or in points of a rate. */
  unit?: 'percent' | 'points'
}

const TileCard: FC<TileProps> = ({ label, tile, text, more = null, unit = 'percent' }) => {
  const change = changeText(tile, unit)
  return (
    <div class="card tile">
      <h2 class="tile-label">{label}</h2>
      <p class="tile-value">{tile.value === null ? '–' : text(tile.value)}</p>
      <p class="tile-more muted">
        {more && <span>{more}</span>}
        {change && <span title="up to the last full half hour, against the same time before">{change}</span>}
      </p>
      <Sparkline series={tile.series} label={`${label}, hour by hour`} />
    </div>
  )
}

/** Null where there is nothing to compare with, or where the comparison would say nothing. */
const changeText = ({ ended, before }: Tile, unit: TileProps['unit']): string | null => {
  if (ended === null || before === null) return null
  const change = unit === 'points' ? ended - before : before === 0 ? null : ((ended - before) / before) * 100
  if (change === null || Math.abs(change) >= 1000) return null
  const amount = unit === 'points' ? change.toFixed(1) : change.toFixed(0)
  if (Number(amount) === 0) return 'as before'
  return `${change > 0 ? '▲' : '▼'} ${amount.replace('-', '')} ${unit === 'points' ? 'points' : '%'}`
}

const percent = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} %`

const NoErrors: FC<{ tiles: Tiles }> = ({ tiles }) => (
  <p class="card card-part muted">
    {tiles.requests.value === 0
      ? 'No requests in the last 24 hours.'
      : 'Nothing failed in the last 24 hours. Single requests are in the '}
    {tiles.requests.value !== 0 && <a href="/logs">log</a>}
  </p>
)

const LastErrors: FC<Pick<FiguresPart, 'errors'> & { now: string }> = ({ errors, now }) => (
  <Card
    id="last-errors"
    title="Last errors"
    aside={
      <a class="card-link" href="/logs?status=failed">
        All of them
      </a>
    }
  >
    <RequestTable id="error-rows" requests={errors} now={now} />
  </Card>
)
