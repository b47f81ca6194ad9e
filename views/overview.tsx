/** The overview: health, what needs attention, remaining quota, accounts, and the totals of the chosen period. */
import type { FC } from 'hono/jsx'
import type { Period } from '../src/model/overview/overview-slots.ts'
import { type FiguresPart, OverviewFiguresPart } from './overview/figures.tsx'
import { type NowPart, OverviewNow } from './overview/now.tsx'
import { PERIOD_CHOICES } from './overview/periods.ts'
import { OverviewPoolPart, type PoolPart } from './overview/pool.tsx'
import { live } from './ui/live.tsx'

/** All times are ISO 8601. All parts come from one snapshot. */
export interface Overview {
  generatedAt: string
  period: Period
  now: NowPart
  /** null: this user may not see accounts. */
  pool: PoolPart | null
  figures: FiguresPart
}

/** Refreshed as a whole, so that its parts agree. */
export const OverviewPage: FC<Overview> = ({ generatedAt, period, now, pool, figures }) => (
  <div class="page overview" data-now={generatedAt} {...live({ id: 'overview', topics: TOPICS, src: getHref(period) })}>
    <h1 class="sr">Overview</h1>
    <OverviewNow {...now} at={generatedAt} />
    {now.health.total > 0 && <PeriodSwitch current={period} />}
    {pool && (pool.total > 0 || now.checklist === null) && (
      <OverviewPoolPart {...pool} at={generatedAt} period={period} />
    )}
    {now.health.total > 0 && <OverviewFiguresPart {...figures} at={generatedAt} period={period} />}
  </div>
)

const TOPICS = ['accounts', 'keys', 'settings', 'usage', 'health', 'minute'] as const

const getHref = (period: Period): string => `/dashboard?period=${period}`

const PeriodSwitch: FC<{ current: Period }> = ({ current }) => (
  <nav class="periods" aria-label="Period">
    {PERIOD_CHOICES.map((period) => (
      <a href={getHref(period)} aria-current={period === current ? 'true' : undefined}>
        {period.replace(/\d+/, '$& ')}
      </a>
    ))}
  </nav>
)
