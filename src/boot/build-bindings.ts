/** Builds the bindings, and keeps memory views up to date. */
import { commit, type Db, onChange } from '../../db/commit.ts'
import { MemoryViews } from '../../db/memory-views.ts'
import type { OpenedPostgres } from '../../db/postgres/open.ts'
import { FailureBudget } from '../auth/failure-budget.ts'
import type { Passwords } from '../auth/passwords.ts'
import { SharedTries } from '../auth/shared-tries.ts'
import type { ServedFolder } from '../cli/open-folder.ts'
import { FormDrafts } from '../http/form-drafts.ts'
import { newSentAlerts } from '../jobs/alert-deliveries.ts'
import type { Clock } from '../lib/clock.ts'
import { ConcurrencyLimits } from '../lib/concurrency-limits.ts'
import { getQueue } from '../lib/lanes.ts'
import type { Log } from '../lib/log.ts'
import type { Random } from '../lib/random.ts'
import { openTcpInfo } from '../lib/tcp-info.ts'
import { LiveHub } from '../live.ts'
import { importDrafts } from '../model/accounts/import-preflight.ts'
import { ResetCredits } from '../model/accounts/reset-credits.ts'
import { StandingAlerts } from '../model/alerts/standing.ts'
import { append } from '../model/audit/audit.ts'
import { Captures } from '../model/captures/captures.ts'
import { Catalog } from '../model/catalog/catalog.ts'
import { TokenRatios } from '../model/catalog/token-ratios.ts'
import { EgressRoutes } from '../model/egress/routes.ts'
import { getEncryptionKeyId } from '../model/encryption-key-id.ts'
import { Firewall } from '../model/firewall.ts'
import { importPlans } from '../model/imports/plan-drafts.ts'
import { KeyLeases, type OtherProcesses } from '../model/keys/key-leases.ts'
import { KeyRing } from '../model/keys/key-ring.ts'
import { LiveRates } from '../model/log/live-rates.ts'
import { OverviewPeriods } from '../model/overview/overview-periods.ts'
import { serviceLevelNow } from '../model/overview/service-level.ts'
import { Shares } from '../model/shares/shares.ts'
import { Sources } from '../model/sources/sources.ts'
import { createOps, type Ops } from '../ops/ops.ts'
import { StreamTimer } from '../proxy/downstream/stream-timer.ts'
import { FailedSockets } from '../proxy/exchange/transport.ts'
import { ArrivingFrames } from '../proxy/ingress/arriving-frames.ts'
import { OwnerProofs } from '../proxy/ingress/owner-proofs.ts'
import { BodyBudget } from '../proxy/ingress/raw-body.ts'
import { Ledger, type LedgerEntry, type Written } from '../proxy/ledger/ledger.ts'
import { AffinityMap } from '../proxy/pool/affinity.ts'
import { ClientLimitsView } from '../proxy/pool/client-limits.ts'
import { Pool } from '../proxy/pool/pool.ts'
import { StreamSlots } from '../proxy/pool/stream-slots.ts'
import { KeySets } from '../proxy/relay/key-sets.ts'
import { ResponseStore } from '../proxy/responses-store/response-store.ts'
import { Overflow } from '../proxy/sources/overflow.ts'
import { OwnBudget, SharedBudget } from '../proxy/sources/overflow-budget.ts'
import type { ProxyDeps } from '../proxy/turn/proxy-deps.ts'
import { SettingsCache } from '../settings/cache.ts'
import type { Reader } from '../threads/reader.ts'
import { Replayer, type StartReplay } from '../threads/replayer.ts'
import { accountOfRefreshToken } from '../upstream/code-exchanges.ts'
import { Credentials } from '../upstream/credentials.ts'
import type { Dial } from '../upstream/dial.ts'
import { createLookup, GuardedFetch, type Lookup } from '../upstream/guarded-fetch.ts'
import type { OAuthContext } from '../upstream/oauth.ts'
import { SignIns } from '../upstream/sign-ins.ts'
import { SourceFetch } from '../upstream/source-fetch.ts'
import type { Bindings } from './bindings.ts'
import type { Config } from './env.ts'
import { getIds, getViews } from './views.ts'

/** External dependencies: real in `main.ts`, fake in tests. */
export interface World {
  config: Config
  folder: ServedFolder
  clock: Clock
  random: Random
  log: Log
  passwords: Passwords
  dial: Dial
  /** Resolves host names of model sources; absent: as the system does. */
  lookup?: Lookup
  reader: Reader
  startReplay: StartReplay
  /** Maximum concurrent requests. */
  maxTurns: number
  /** Absent: no other process serves requests. */
  sharing?: Sharing
  /** Present if nodes share the database. They notify each other of changes. */
  nodes?: Pick<OpenedPostgres, 'watch' | 'send' | 'onMessage'> & { hasOthers: () => Promise<boolean> }
  /** Absent: the server was not started by a supervisor, and no other process uses the folder. */
  others?: OtherProcesses
  timeout: (ms: number) => AbortSignal
}

/** Several processes serve requests together. */
export interface Sharing {
  /** How many, this one included. */
  processes: number
  /** The number of this process; processes that start later get other numbers. */
  number: number
  /** Whether a process with this number runs. */
  isAlive: (number: number) => boolean
}

/** Builds the bindings and connects memory views to the commits that change them. Starts nothing yet. */
export const buildBindings = async (world: World): Promise<Bindings> => {
  const { config, folder, clock, random, log, dial } = world
  const { db, sealer } = folder
  const settings = await SettingsCache.open(db, (err) => log.error('a listener failed', { err }))
  const lifecycle = lifecycleOf(world)
  const live = new LiveHub({ clock, process: world.sharing?.number ?? null, health: () => getHealth(bindings) })
  const ledger = await getLedger(world, live, (entry) => ops.count(entry))
  const egress = await EgressRoutes.open({ db, sealer, clock, log, settings: () => settings.current() })
  const seats = new ConcurrencyLimits()
  const beside = await getSources(world, { settings, seats, port: () => bindings.server?.port })
  const catalog = await Catalog.open(db, beside.sources)
  const rates = new LiveRates({ clock, reads: world.reader })
  const pool = await toPool(world, { settings, catalog, ledger, egress, rates })
  const oauth = { dial, authBaseUrl: config.AUTH_BASE_URL, timeout: world.timeout }
  const ops = getOps(world, { settings, pool })
  const credentials = await getCredentials(world, { oauth, pool, egress })
  const affinity = await getAffinity(db, pool)
  const pulse = new StreamTimer(clock)
  const bodies = new BodyBudget(() => settings.current().inFlightBodyMiB * 1024 * 1024)
  const upstream = { dial, clock, baseUrl: config.UPSTREAM_BASE_URL }
  const keys = await KeyRing.open(db)
  const bindings: Omit<Bindings, 'views'> = {
    db,
    reader: world.reader,
    settings,
    keys,
    keyLeases: leasesOf(world, { keys, ledger }),
    firewall: await Firewall.open(db),
    catalog,
    ...beside,
    alerts: await StandingAlerts.open(db),
    sentAlerts: newSentAlerts(),
    pool,
    resetCredits: new ResetCredits(),
    ...getClientUsage({ pool, settings, clock, upstream, egress }),
    egress,
    signIns: getSignIns(world, oauth, egress),
    importDrafts: importDrafts(clock, random),
    importPlans: importPlans(clock, random),
    importing: {
      dir: folder.dir,
      exchange: (token) => accountOfRefreshToken({ ...oauth, route: egress.of(null) }, token),
      oneAtATime: getQueue(1),
    },
    formDrafts: new FormDrafts(clock, random),
    affinity,
    ledger,
    proxyDeps: getProxyDeps(world, { ...beside, pool, affinity, credentials, upstream, pulse, catalog, egress }),
    turns: new Set(),
    sockets: new Set(),
    liveCalls: new Set(),
    pulse,
    bodies,
    responses: new ResponseStore({ clock, settings: () => settings.current() }),
    captures: getCaptures(world),
    arrivingFrames: new ArrivingFrames({ clock, bodies, open: openTcpInfo }),
    keySets: new KeySets(clock),
    rates,
    shares: await sharesOf(world, { pool, ledger, rates }),
    sealer,
    passwords: world.passwords,
    ...getBudgets(world),
    clock,
    random,
    log,
    env: config,
    lifecycle,
    ops,
    live,
    ...getComputed(world),
    seats,
  }
  const views = new MemoryViews(getViews(bindings), { clock, log })
  onChange(db, async (topics) => views.changed(topics))
  announceChanges(bindings)
  return Object.assign(bindings, { views })
}

const announceChanges = ({ db, figures, live }: Pick<Bindings, 'db' | 'figures' | 'live'>): void => {
  onChange(db, async (topics) => {
    if (topics.has('keys')) figures.forgetKeys()
    if (topics.has('log')) figures.forgetLog()
    live.committed(topics)
  })
}

const lifecycleOf = ({ clock, maxTurns, sharing }: World): Bindings['lifecycle'] => ({
  leaving: false,
  draining: false,
  handedOver: false,
  startedAt: clock.now(),
  maxTurns,
  process: sharing?.number ?? null,
})

/** What is computed in other threads. */
const getComputed = ({ reader, startReplay, clock, log }: World) => ({
  figures: new OverviewPeriods({ reader, clock }),
  replayer: new Replayer({ start: startReplay, clock, log }),
})
const getAffinity = async (db: Db, pool: Pool): Promise<AffinityMap> => {
  const affinity = new AffinityMap()
  await affinity.load(db)
  affinity.keepOnly(getIds(pool))
  return affinity
}

/** Changes whenever the footer or the line about captures does. */
const getHealth = (now: Pick<Bindings, 'lifecycle' | 'ledger' | 'ops' | 'pool' | 'captures'>): string =>
  `${serviceLevelNow(now)} ${now.ops.outage.current?.turns} ${now.captures.running().length}`

const getCaptures = ({ folder: { dir, db, sealer }, clock, random, log }: World): Captures =>
  new Captures({
    ...{ dir, sealer, clock, random, log },
    onEnded: ({ id, endReason, bytes, requests }) => {
      const system = { id: 'system', method: null, address: null, at: clock.now() }
      const details = { reason: endReason, bytes, requests }
      commit(db, (tx) => append(tx, system, 'capture_ended', { target: id, details })).catch((err: unknown) => {
        log.warn('the end of a capture could not be recorded', { capture: id, err })
      })
    },
  })

const getBudgets = ({ clock, folder: { db }, sharing }: World) => ({
  failures: new FailureBudget(clock, undefined, sharing && new SharedTries(db, clock)),
  refusals: new FailureBudget(clock),
  passkeyStarts: new FailureBudget(clock, PASSKEY_STARTS),
  ownChanges: new FailureBudget(clock, OWN_CHANGES),
})
const getProxyDeps = (
  { clock, random, log }: World,
  {
    catalog,
    sourceFetch,
    overflow,
    egress,
    ...parts
  }: ProxyDepsParts & Pick<Bindings, 'catalog' | 'sourceFetch' | 'overflow' | 'egress'>,
): ProxyDeps => ({
  pool: parts.pool,
  affinity: parts.affinity,
  credentials: parts.credentials,
  upstream: parts.upstream,
  sourceFetch,
  overflow,
  getRoute: (egressPoolId) => egress.of(egressPoolId),
  prefersSockets: (model) => catalog.prefersWebsockets(model),
  failedSockets: new FailedSockets(),
  sourceThreads: new FailedSockets(),
  pulse: parts.pulse,
  clock,
  random: () => random.float(),
  log,
})

type ProxyDepsParts = Pick<ProxyDeps, 'pool' | 'affinity' | 'credentials' | 'upstream' | 'pulse'>

const toPool = async (
  { folder: { db }, clock, log, random, sharing, others = NO_OTHERS }: World,
  { settings, catalog, ledger, egress, rates }: Pick<Bindings, 'settings' | 'catalog' | 'ledger' | 'egress' | 'rates'>,
): Promise<Pool> => {
  const slots = new StreamSlots({ db, clock, log, ...others, isShared: sharing ? () => true : others.hasEarlier })
  const pool = await Pool.open({
    db,
    clock,
    log,
    slots,
    random: () => random.float(),
    settings: () => settings.current(),
    getModels: (id) => catalog.getModels(id),
    saveUsage: (id, snapshot, running) => ledger.usage(id, snapshot, running),
    whyNoRoute: (egressPoolId) => egress.whyClosed(egressPoolId),
    rates: () => rates.current,
  })
  others.onReconnect?.(() => slots.noteReconnect(() => pool.all()))
  return pool
}

/** What serves requests beside the pool. */
const getSources = async (
  { config, folder: { db, sealer }, dial, lookup = createLookup(), clock, log, sharing }: World,
  { settings, seats, port }: Pick<Bindings, 'settings' | 'seats'> & { port: () => number | undefined },
): Promise<Pick<Bindings, 'sources' | 'sourceFetch' | 'guardedFetch' | 'overflow'>> => {
  const sources = await Sources.open(db, sealer)
  const budget = sharing ? new SharedBudget({ db, clock, log }) : await OwnBudget.open(db, clock.now())
  const guardedFetch = new GuardedFetch({
    dial,
    lookup,
    own: () => ({ port: port() ?? config.PORT, publicUrl: config.PUBLIC_URL }),
  })
  return {
    sources,
    sourceFetch: new SourceFetch(guardedFetch),
    guardedFetch,
    overflow: new Overflow({ sources, settings: () => settings.current(), budget, seats, clock, db, log }),
  }
}

const getCredentials = (
  { folder: { locks, db, sealer }, clock, log, nodes, others }: World,
  { oauth, pool, egress }: { oauth: OAuthContext; pool: Pool; egress: EgressRoutes },
): Promise<Credentials> =>
  Credentials.open({
    db,
    sealer,
    clock,
    log,
    oauth,
    getRoute: (egressPoolId) => egress.of(egressPoolId),
    lock: (id) => locks.tryLock(`refresh:${id}`),
    node: nodes && others?.number,
    onPermanentFailure: (id, code, evidence) =>
      pool.apply(id, { kind: 'auth_failed', at: clock.now(), code, evidence }),
    onRenewed: (id) => pool.health(id, { kind: 'renewed' }),
  })

/** What clients and companion tools read of limits and usage. */
const getClientUsage = ({
  pool,
  settings,
  clock,
  upstream,
  egress,
}: Pick<Bindings, 'pool' | 'settings' | 'clock' | 'egress'> & Pick<ProxyDeps, 'upstream'>) => ({
  clientLimits: new ClientLimitsView({ pool, settings, clock }),
  tokenRatios: new TokenRatios(),
  ownerProofs: new OwnerProofs({
    pool,
    upstream,
    getRoute: (egressPoolId) => egress.of(egressPoolId),
    wrong: new FailureBudget(clock),
  }),
  fleetRefreshes: new Map<string, number>(),
})

const getOps = ({ config, folder, clock, dial }: World, { settings, pool }: Pick<Bindings, 'settings' | 'pool'>): Ops =>
  createOps({
    config,
    database: folder,
    keyFingerprint: () => getEncryptionKeyId(folder.db),
    clock,
    dial,
    settings: () => settings.current(),
    isKnownModel: (model) => pool.offers(model),
  })

const getSignIns = (
  { config, folder: { db, sealer }, clock, random, log }: World,
  oauth: OAuthContext,
  egress: EgressRoutes,
): SignIns => {
  const callback = { host: config.OAUTH_CALLBACK_HOST, port: config.OAUTH_CALLBACK_PORT }
  return new SignIns({ db, sealer, clock, random, log, oauth, getRoute: (flow) => egress.ofSignIn(flow), callback })
}

const NO_OTHERS: OtherProcesses = { number: 0, isAlive: () => false, hasEarlier: () => false }

const leasesOf = (
  { folder: { db }, clock, log, sharing, others = NO_OTHERS }: World,
  { keys, ledger }: Pick<Bindings, 'keys' | 'ledger'>,
): KeyLeases =>
  new KeyLeases({
    ...{ db, clock, log, others, processes: sharing?.processes ?? 1 },
    limit: (id) => keys.limit(id),
    limits: () => keys.limits(),
    flush: () => ledger.flush(),
  })

const sharesOf = (
  { folder: { db }, clock, log, reader, sharing, nodes, others = NO_OTHERS }: World,
  { pool, ledger, rates }: Pick<Bindings, 'pool' | 'ledger' | 'rates'>,
): Promise<Shares> =>
  Shares.open({
    ...{ db, clock, log, pool, rates, reads: reader },
    flush: () => ledger.flush(),
    isShared: () => sharing !== undefined || nodes !== undefined || others.hasEarlier(),
  })

const getLedger = (
  { folder: { db }, clock, log, others = NO_OTHERS }: World,
  live: LiveHub,
  onRecord: (entry: LedgerEntry) => void,
): Promise<Ledger> => {
  const onWritten = ({ turns, usages }: Written) => {
    if (turns > 0) live.ended(turns)
    if (usages > 0) live.note('usage')
  }
  return Ledger.open({ db, clock, log, process: others.number, onRecord, onWritten })
}

/** Per minute and client, or user and purpose; there is room for a thousand waiting sign-ins. */
const PASSKEY_STARTS = 30
/** Per minute, user and event, or sign-in client: more than anyone does by hand. */
const OWN_CHANGES = 30
