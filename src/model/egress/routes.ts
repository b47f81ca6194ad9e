/** The route of each pool in memory, and which endpoints connect. Rules: bound pool, else default pool, else closed. */
import type { Db } from '../../../db/commit.ts'
import type { Clock } from '../../lib/clock.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import type { Log } from '../../lib/log.ts'
import type { Sealer } from '../../lib/seal.ts'
import type { Settings } from '../../settings/schema.ts'
import { getAccount } from '../accounts/accounts.ts'
import { type EgressEndpointRow, endpointKey, endpointUrl, listEndpoints, listMembers, listPools } from './endpoints.ts'
import { AS_ENVIRONMENT, type EgressReason, type ProxyEndpoint, type Route } from './route.ts'

/** How long an endpoint that did not connect comes last, and accounts whose endpoints all failed are skipped. */
const DOWN_MS = 30_000
/** Failing for this long, an endpoint needs attention. */
export const FAILING_LONG_MS = 5 * MINUTE_MS

interface Health {
  /** ms since epoch: the first failure since it last connected. */
  since: number
  /** ms since epoch */
  lastAt: number
  error: string
}

/** An endpoint that keeps failing. */
export interface FailingEndpoint {
  id: string
  name: string
  /** ms since epoch */
  since: number
  error: string
}

interface RoutesDeps {
  db: Db
  sealer: Sealer
  clock: Pick<Clock, 'now'>
  log: Log
  settings: () => Readonly<Pick<Settings, 'egressRouting' | 'egressDefaultPoolId'>>
}

export class EgressRoutes {
  readonly #deps: RoutesDeps
  #pools = new Map<string, Route>()
  #unbound: Route = AS_ENVIRONMENT
  #endpoints = new Map<string, EgressEndpointRow>()
  readonly #health = new Map<string, Health>()

  private constructor(deps: RoutesDeps) {
    this.#deps = deps
  }

  static async open(deps: RoutesDeps): Promise<EgressRoutes> {
    const routes = new EgressRoutes(deps)
    await routes.reload()
    return routes
  }

  /** Reloads the rows; a route that leads through the same proxies stays the same object. */
  async reload(): Promise<void> {
    const { db, settings } = this.#deps
    const endpoints = new Map((await listEndpoints(db)).map((row) => [row.id, row]))
    const members = await listMembers(db)
    const pools = new Map<string, Route>()
    for (const { id, isActive } of await listPools(db)) {
      const own = members.filter((member) => member.poolId === id && member.isActive)
      const rows = own.flatMap(({ endpointId }) => endpoints.get(endpointId) ?? [])
      const route = isActive ? this.#routeThrough(id, rows) : closed('pool_unavailable')
      const before = this.#pools.get(id)
      pools.set(id, before && toKey(before) === toKey(route) ? before : route)
    }
    this.#pools = pools
    for (const [id, row] of this.#endpoints) {
      const now = endpoints.get(id)
      if (!now?.isActive || endpointKey(row) !== endpointKey(now)) this.#health.delete(id)
    }
    this.#endpoints = endpoints
    const { egressRouting, egressDefaultPoolId } = settings()
    this.#unbound = !egressRouting
      ? AS_ENVIRONMENT
      : egressDefaultPoolId === null
        ? closed('default_pool_unconfigured')
        : this.#ofPool(egressDefaultPoolId)
  }

  /** The route of an account with this pool; null: no pool. */
  of(poolId: string | null): Route {
    return poolId === null ? this.#unbound : this.#ofPool(poolId)
  }

  /** The route of a sign-in: that of the account to sign in again, or of the pool chosen for a new one. */
  async ofSignIn({
    accountId,
    egressPoolId,
  }: {
    accountId: string | null
    egressPoolId: string | null
  }): Promise<Route> {
    return this.of(accountId === null ? egressPoolId : (await getAccount(this.#deps.db, accountId)).egressPoolId)
  }

  /** The route through one endpoint alone, for its test; null: its password cannot be read. */
  through(row: EgressEndpointRow): Route | null {
    const endpoint = this.#toEndpoint(row)
    return endpoint && this.#proxies(`test:${row.id}`, [endpoint])
  }

  /** Why accounts with this pool are skipped, and until when (ms; null: until something is changed). Null: they have a route. */
  whyClosed(poolId: string | null): { reason: EgressReason; until: number | null } | null {
    const route = poolId === null ? this.#unbound : this.#ofPool(poolId)
    if (route.kind === 'environment') return null
    if (route.kind === 'closed') return { reason: route.reason, until: null }
    const ends = route.endpoints().map(({ id }) => this.#downUntil(id))
    return ends.every((end) => end > 0) ? { reason: 'endpoints_unreachable', until: Math.min(...ends) } : null
  }

  /** Endpoints that have failed for five minutes without connecting in between. */
  failing(): FailingEndpoint[] {
    return [...this.#health].flatMap(([id, { since, lastAt, error }]) => {
      const name = this.#endpoints.get(id)?.name
      return name !== undefined && lastAt - since >= FAILING_LONG_MS ? [{ id, name, since, error }] : []
    })
  }

  /** The keys of all routes through proxies. */
  keys(): Set<string> {
    return new Set([...this.#pools.values()].flatMap((route) => (route.kind === 'proxies' ? [route.key] : [])))
  }

  #ofPool(id: string): Route {
    return this.#pools.get(id) ?? closed('pool_unavailable')
  }

  #routeThrough(poolId: string, rows: readonly EgressEndpointRow[]): Route {
    const active = rows.filter(({ isActive }) => isActive)
    if (active.length === 0) return closed('pool_has_no_active_endpoints')
    const usable = active.flatMap((row) => this.#toEndpoint(row) ?? [])
    return usable.length === 0 ? closed('proxy_credentials_undecryptable') : this.#proxies(poolId, usable)
  }

  #toEndpoint(row: EgressEndpointRow): ProxyEndpoint | null {
    const url = endpointUrl(row, this.#deps.sealer)
    return url === null ? null : { id: row.id, url }
  }

  #proxies(name: string, endpoints: readonly ProxyEndpoint[]): Route {
    return {
      kind: 'proxies',
      key: [name, ...endpoints.map(({ id, url }) => `${id} ${url}`)].join('\n'),
      endpoints: () =>
        endpoints.toSorted((a, b) => Number(this.#downUntil(a.id) > 0) - Number(this.#downUntil(b.id) > 0)),
      note: (id, failure) => this.#note(id, failure),
    }
  }

  /** ms since epoch; 0: not known to be down. */
  #downUntil(endpointId: string): number {
    const lastAt = this.#health.get(endpointId)?.lastAt ?? Number.NEGATIVE_INFINITY
    const now = this.#deps.clock.now()
    return lastAt <= now && now < lastAt + DOWN_MS ? lastAt + DOWN_MS : 0
  }

  #note(endpointId: string, failure: string | null): void {
    const { log, clock } = this.#deps
    const before = this.#health.get(endpointId)
    const name = this.#endpoints.get(endpointId)?.name
    if (name === undefined) return // deleted in the meantime
    if (failure === null) {
      if (before) log.info('an outbound proxy connects again', { endpoint: name })
      this.#health.delete(endpointId)
      return
    }
    if (!before) log.warn('an outbound proxy does not connect', { endpoint: name, why: failure })
    const at = clock.now()
    this.#health.set(endpointId, { since: before?.since ?? at, lastAt: at, error: failure })
  }
}

const closed = (reason: EgressReason): Route => ({ kind: 'closed', reason })

const toKey = (route: Route): string => (route.kind === 'proxies' ? route.key : JSON.stringify(route))
