/** The dependencies of the data plane. Types only. */
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Route } from '../../model/egress/route.ts'
import type { Credentials } from '../../upstream/credentials.ts'
import type { Upstream } from '../../upstream/open.ts'
import type { SourceFetch } from '../../upstream/source-fetch.ts'
import type { StreamTimer } from '../downstream/stream-timer.ts'
import type { FailedSockets } from '../exchange/transport.ts'
import type { AffinityMap } from '../pool/affinity.ts'
import type { Pool } from '../pool/pool.ts'
import type { Overflow } from '../sources/overflow.ts'

export interface ProxyDeps {
  pool: Pool
  affinity: AffinityMap
  credentials: Credentials
  upstream: Upstream
  /** The route of an account with this pool. */
  getRoute: (egressPoolId: string | null) => Route
  /** Calls to model sources. */
  sourceFetch: Pick<SourceFetch, 'fetch'>
  overflow: Overflow
  /** Whether the catalog says the model prefers sockets. */
  prefersSockets: (model: string) => boolean
  failedSockets: FailedSockets
  /** Conversations whose model a model source serves: their clients are to use HTTP. */
  sourceThreads: FailedSockets
  pulse: StreamTimer
  clock: Clock
  /** In [0,1). */
  random: () => number
  log: Log
}
