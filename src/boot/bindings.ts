/** What a request can access (`Bindings`, built once in main) and its own state (`Variables`). Types only. */
import type { Context } from 'hono'
import type { z } from 'zod'
import type { Db } from '../../db/commit.ts'
import type { MemoryViews } from '../../db/memory-views.ts'
import type { Client } from '../auth/client-key.ts'
import type { FailureBudget } from '../auth/failure-budget.ts'
import type { Passwords } from '../auth/passwords.ts'
import type { Principal } from '../auth/principal.ts'
import type { FormDrafts, Typed } from '../http/form-drafts.ts'
import type { SocketPeer } from '../http/websocket.ts'
import type { SentAlerts } from '../jobs/alert-deliveries.ts'
import type { Clock } from '../lib/clock.ts'
import type { ConcurrencyLimits } from '../lib/concurrency-limits.ts'
import type { Drafts } from '../lib/drafts.ts'
import type { getQueue } from '../lib/lanes.ts'
import type { Log } from '../lib/log.ts'
import type { Random } from '../lib/random.ts'
import type { Sealer } from '../lib/seal.ts'
import type { LiveHub } from '../live.ts'
import type { ImportedAccount } from '../model/accounts/auth-json.ts'
import type { ImportPreview } from '../model/accounts/import-preflight.ts'
import type { ResetCredits } from '../model/accounts/reset-credits.ts'
import type { StandingAlerts } from '../model/alerts/standing.ts'
import type { Captures } from '../model/captures/captures.ts'
import type { Catalog } from '../model/catalog/catalog.ts'
import type { TokenRatios } from '../model/catalog/token-ratios.ts'
import type { EgressRoutes } from '../model/egress/routes.ts'
import type { Firewall } from '../model/firewall.ts'
import type { ImportPlan } from '../model/imports/plan.ts'
import type { KeyLeases } from '../model/keys/key-leases.ts'
import type { KeyRing } from '../model/keys/key-ring.ts'
import type { LiveRates } from '../model/log/live-rates.ts'
import type { OverviewPeriods } from '../model/overview/overview-periods.ts'
import type { Shares } from '../model/shares/shares.ts'
import type { Sources } from '../model/sources/sources.ts'
import type { Ops } from '../ops/ops.ts'
import type { SocketSession } from '../proxy/downstream/socket-session.ts'
import type { StreamTimer } from '../proxy/downstream/stream-timer.ts'
import type { ArrivingFrames } from '../proxy/ingress/arriving-frames.ts'
import type { OwnerProofs } from '../proxy/ingress/owner-proofs.ts'
import type { BodyBudget, BodyHold } from '../proxy/ingress/raw-body.ts'
import type { Ledger } from '../proxy/ledger/ledger.ts'
import type { AffinityMap } from '../proxy/pool/affinity.ts'
import type { ClientLimitsView } from '../proxy/pool/client-limits.ts'
import type { Pool } from '../proxy/pool/pool.ts'
import type { KeySets } from '../proxy/relay/key-sets.ts'
import type { LiveSession } from '../proxy/relay/live-session.ts'
import type { ResponseStore } from '../proxy/responses-store/response-store.ts'
import type { Overflow } from '../proxy/sources/overflow.ts'
import type { ProxyDeps } from '../proxy/turn/proxy-deps.ts'
import type { SettingsCache } from '../settings/cache.ts'
import type { Reader } from '../threads/reader.ts'
import type { Replayer } from '../threads/replayer.ts'
import type { GuardedFetch } from '../upstream/guarded-fetch.ts'
import type { SignIns } from '../upstream/sign-ins.ts'
import type { SourceFetch } from '../upstream/source-fetch.ts'
import type { Config } from './env.ts'

export interface Bindings {
  db: Db
  /** Log pages and reports, answered by a worker with a read-only connection. */
  reader: Reader
  /** Replays of the request log, in a thread of their own. */
  replayer: Replayer
  settings: SettingsCache
  keys: KeyRing
  /** This process's parts of key limits. */
  keyLeases: KeyLeases
  firewall: Firewall
  catalog: Catalog
  tokenRatios: TokenRatios
  /** Enabled model sources. */
  sources: Sources
  /** The only way to them. */
  sourceFetch: SourceFetch
  /** What a model source serves while the pool is used up. */
  overflow: Overflow
  /** Sends requests to the receivers of alerts. */
  guardedFetch: GuardedFetch
  /** The active alerts. */
  alerts: StandingAlerts
  sentAlerts: SentAlerts
  pool: Pool
  /** Reset credits of the pool's accounts, polled by a job. */
  resetCredits: ResetCredits
  /** By which proxies accounts reach ChatGPT. */
  egress: EgressRoutes
  /** Pending ChatGPT sign-ins. */
  signIns: SignIns
  /** Previewed files not imported yet. */
  importDrafts: Drafts<ImportPreview>
  /** Plans of imports from other tools. */
  importPlans: Drafts<ImportPlan>
  /** What is needed to read and import their files. */
  importing: {
    dir: string
    exchange: (refreshToken: string) => Promise<ImportedAccount>
    /**
     * Runs imports one at a time, because checking a passphrase takes 128 MiB of memory, and a database as much as its
     * size.
     */
    oneAtATime: ReturnType<typeof getQueue>
  }
  /** What users typed into rejected forms. */
  formDrafts: FormDrafts
  /** Which limits clients are shown. */
  clientLimits: ClientLimitsView
  /** Which ChatGPT tokens belong to which accounts. */
  ownerProofs: OwnerProofs
  /** Key → monotonic time of its last `POST /api/fleet/refresh`. */
  fleetRefreshes: Map<string, number>
  affinity: AffinityMap
  ledger: Ledger
  /** Dependencies of the attempt loop. */
  proxyDeps: ProxyDeps
  /** One per running request; draining aborts them. */
  turns: Set<AbortController>
  /** Open client sockets; draining closes them. */
  sockets: Set<SocketSession>
  /** Open WebSockets of live calls. */
  liveCalls: Set<LiveSession>
  /** One timer for every open stream: keepalives and silence. */
  pulse: StreamTimer
  bodies: BodyBudget
  /** Answered `/v1` requests that later ones can refer to. */
  responses: ResponseStore
  /** Requests recorded whole, while a user has this turned on. */
  captures: Captures
  arrivingFrames: ArrivingFrames
  /** Public keys of agent identities, as ChatGPT answered last. */
  keySets: KeySets
  /** What requests use of the windows of accounts. */
  rates: LiveRates
  /** Users' shares of the pool. */
  shares: Shares
  /** Notifies open dashboards of changes. */
  live: LiveHub
  /** Limits concurrent streams and measurements of users. */
  seats: ConcurrencyLimits
  /** The overview's totals, read at most every few seconds. */
  figures: OverviewPeriods
  /** Metrics, backups and the doctor. */
  ops: Ops
  /** Reloaded after commits. */
  views: MemoryViews
  sealer: Sealer
  passwords: Passwords
  /** Limits wrong secrets of any kind. */
  failures: FailureBudget
  /** Limits recorded rejections of proxy identities. */
  refusals: FailureBudget
  /** Limits started passkey ceremonies, by client or by user and purpose: each leaves a challenge. */
  passkeyStarts: FailureBudget
  /** Limits users' own changes, by user and event, and sign-ins, by client: each leaves an audit row. */
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
  /** Whether the process reports that it is not ready, but still serves requests. */
  leaving: boolean
  /** New requests are rejected, and running ones finish. */
  draining: boolean
  /** A successor serves new connections. Open ones are served here and closed at the next opportunity. */
  handedOver: boolean
  /** Number of this process where several serve together. */
  process?: number | null
  /** ms since epoch. */
  startedAt: number
  /** Concurrent requests; the runtime silently queues fetches beyond its cap. */
  maxTurns: number
}

interface Variables {
  requestId: string
  /** `clock.monotonic()` when the request arrived. */
  arrivedAt: number
  /** Address of the client after trusted proxies; null: unknown. */
  clientIp: string | null
  /** The peer is a trusted proxy, so its forwarded headers count. */
  viaProxy: boolean
  /** The socket's own remote address; null on a Unix socket. */
  peer: string | null
  client: Client
  /** The memory of the request body, until a turn releases it; null: a turn does, or none was read. */
  bodyHold: BodyHold | null
  /** A ChatGPT token that has yet to be proved; null: the client has a key. */
  ownerToken: string | null
  /** Id of the account whose owner the client has proved to be; null: the client has a key. */
  ownedAccount: string | null
  principal: Principal
  /** The parameters of this route; absent when it takes none. */
  querySchema?: z.ZodObject
  /** Id of the last change the requested page is sure to include; only for pages. */
  liveId: string
  /** Runs the access gate again and throws as it does: reading the body took time. */
  passAgain: (c: Ctx) => Promise<unknown>
  /** Form fields, once read. */
  typed: Typed
  /** Dropped request members, named in `x-sluice-dropped-fields`. */
  droppedFields: readonly string[]
  /** The answer is relayed as it arrives, whatever its content type. */
  isRelayed: boolean
}

export type AppEnv = { Bindings: Bindings; Variables: Variables }

/** What a handler is given. */
export type Ctx = Context<AppEnv>
