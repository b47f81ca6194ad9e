/** The overview: health, what needs attention, remaining quota, accounts, and the figures of the chosen period. */
import type { FC } from 'hono/jsx'
import type { Overview } from '../src/admin/overview.ts'
import { OverviewFiguresPart } from './overview/figures.tsx'
import { OverviewNow } from './overview/now.tsx'
import { OverviewPoolPart } from './overview/pool.tsx'

/** Each part renews itself when what it shows has changed; a pool that is still empty has nothing to say. */
export const OverviewPage: FC<Overview> = ({ now, pool, figures }) => (
  <div id="overview" class="page" data-now={now.generatedAt}>
    <h1 class="sr">Overview</h1>
    <OverviewNow {...now} />
    {pool && (pool.total > 0 || now.checklist === null) && <OverviewPoolPart {...pool} />}
    {now.health.total > 0 && <OverviewFiguresPart {...figures} />}
  </div>
)
