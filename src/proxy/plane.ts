/** The dependencies of the data plane. Types only. */
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Route } from '../model/egress/route.ts'
import type { Credentials } from '../upstream/credentials.ts'
import type { Upstream } from '../upstream/open.ts'
import type { AffinityMap } from './affinity.ts'
import type { Pool } from './pool.ts'
import type { Pulse } from './pulse.ts'
import type { FailedSockets } from './socket-trouble.ts'

export interface Plane {
  pool: Pool
  affinity: AffinityMap
  credentials: Credentials
  upstream: Upstream
  /** The route of an account with this pool. */
  routeOf: (egressPoolId: string | null) => Route
  /** Whether the catalog says the model prefers sockets. */
  prefersSockets: (model: string) => boolean
  failedSockets: FailedSockets
  pulse: Pulse
  clock: Clock
  /** In [0,1). */
  random: () => number
  log: Log
}
