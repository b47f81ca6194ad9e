/** What a request can reach (`Bindings`, built once in main) and what it knows about itself (`Variables`). Types only. */
import type { Context } from 'hono'
import type { Db } from '../db/commit.ts'
import type { MemoryViews } from '../db/memory-views.ts'
import type { Client } from './auth/client-key.ts'
import type { FailureBudget } from './auth/failure-budget.ts'
import type { Passwords } from './auth/passwords.ts'
import type { Principal } from './auth/principal.ts'
import type { Config } from './env.ts'
import type { FormDrafts, Typed } from './http/form-drafts.ts'
import type { SocketPeer } from './http/websocket.ts'
import type { Clock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'
import type { Random } from './lib/random.ts'
import type { Roster } from './lib/roster.ts'
import type { Sealer } from './lib/seal.ts'
import type { Seats } from './lib/seats.ts'
import type { Stopper } from './lib/stopper.ts'
import type { LiveHub } from './live.ts'
import type { Catalog } from './model/catalog.ts'
import type { Firewall } from './model/firewall.ts'
import type { ImportDrafts } from './model/import-preflight.ts'
import type { KeyRing } from './model/key-ring.ts'
import type { OverviewPeriods } from './model/overview-periods.ts'
import type { ResetCredits } from './model/reset-credits.ts'
import type { Ops } from './ops/ops.ts'
import type { AffinityMap } from './proxy/affinity.ts'
import type { ArrivingFrames } from './proxy/arriving-frames.ts'
import type { Ledger } from './proxy/ledger.ts'
import type { Plane } from './proxy/plane.ts'
import type { Pool } from './proxy/pool.ts'
import type { Pulse } from './proxy/pulse.ts'
import type { BodyBudget } from './proxy/raw-body.ts'
import type { KeySets } from './proxy/relay/key-sets.ts'
import type { SocketSession } from './proxy/socket-session.ts'
import type { Reader } from './reader.ts'
import type { SettingsCache } from './settings/cache.ts'
import type { SignIns } from './upstream/sign-ins.ts'

export interface Bindings {
  db: Db
  /** Log pages and reports, answered by a worker on a read-only connection. */
  reader: Reader
  settings: SettingsCache
  keys: KeyRing
  firewall: Firewall
  catalog: Catalog
  pool: Pool
  /** Of the accounts in the pool, asked for by a job. */
  resetCredits: ResetCredits
  /** Sign-ins to the upstream that are under way. */
  signIns: SignIns
  /** Files that were looked at and not imported yet. */
  importDrafts: ImportDrafts
  /** What was typed into forms that were refused. */
  formDrafts: FormDrafts
  affinity: AffinityMap
  ledger: Ledger
  /** What the attempt loop works with. */
  plane: Plane
  /** One a running turn; draining aborts them. */
  turns: Roster<Stopper>
  /** Every open downstream socket; draining closes them. */
  sockets: Roster<SocketSession>
  /** One timer for every open stream: keepalives and silence. */
  pulse: Pulse
  bodies: BodyBudget
  arrivingFrames: ArrivingFrames
  /** Public keys of agent identities, as ChatGPT answered last. */
  keySets: KeySets
  /** Tells open dashboards what has changed. */
  live: LiveHub
  /** Streams to people that may be open at once. */
  seats: Seats
  /** The sums of the overview, read at most every few seconds. */
  figures: OverviewPeriods
  /** What the service knows about itself: metrics, backups, the doctor. */
  ops: Ops
  /** What is read again after a commit. */
  views: MemoryViews
  sealer: Sealer
  passwords: Passwords
  /** Wrong guesses of every kind of secret. */
  failures: FailureBudget
  /** Refused identities of the reverse proxy that were written down. */
  refusals: FailureBudget
  /** What was begun with passkeys, by client or by person and purpose: each leaves a challenge. */
  passkeyStarts: FailureBudget
  /** What people changed about themselves, by person and event, and their sign-ins, by client: each leaves an audit row. */
  ownChanges: FailureBudget
  clock: Clock
  random: Random
  log: Log
  env: Config
  lifecycle: Lifecycle
  /** The listening server; absent under `app.request` in tests. */
  server?: Bun.Server<SocketPeer>
  /** Socket peer override for tests without a socket. */
  peer?: string
}

interface Lifecycle {
  draining: boolean
  /** ms since epoch. */
  startedAt: number
  /** Turns served at once; the runtime silently queues what goes beyond its outbound cap. */
  maxTurns: number
}

interface Variables {
  requestId: string
  /** `clock.monotonic()` when the request arrived. */
  arrivedAt: number
  /** Address of the client after trusted proxies; null: unknown. */
  clientIp: string | null
  /** The peer is a trusted proxy: what it forwards may be believed. */
  viaProxy: boolean
  /** The socket's own remote address; null on a Unix socket. */
  peer: string | null
  client: Client
  principal: Principal
  /** Of the last change that the page which is asked for is sure to know; only of a page. */
  liveId: string
  /** Asks the access gate again, and throws as it does: the body took its time, and who asks may be gone since. */
  passAgain: (c: Ctx) => void
  /** What a form sent, once it was read. */
  typed: Typed
  /** Request members that were left out, named in `x-sluice-dropped-fields`. */
  droppedFields: readonly string[]
  /** The answer is relayed as it arrives, whatever its content type. */
  isRelayed: boolean
}

export type AppEnv = { Bindings: Bindings; Variables: Variables }

/** What a handler is given. */
export type Ctx = Context<AppEnv>
