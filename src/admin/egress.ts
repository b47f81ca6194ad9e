/** `/api/settings/upstream-proxy`: outbound proxies, their pools, and which accounts use which. */

import { commit } from '../../db/commit.ts'
import type { RouteView } from '../../views/accounts/routing.tsx'
import type { EgressPage } from '../../views/settings/egress.tsx'
import { actor } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { body } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { proceed } from '../http/reply.tsx'
import { mapInOrder } from '../lib/in-order.ts'
import { iso } from '../lib/iso.ts'
import { accountNames } from '../model/accounts/account-names.ts'
import type { AuditEvent } from '../model/audit/audit.ts'
import {
  createEndpoint,
  deleteEndpoint,
  type EgressEndpointRow,
  type EgressPoolRow,
  editEndpoint,
  getEndpoint,
  listEndpoints,
  listMembers,
  listPools,
  recordTest,
} from '../model/egress/endpoints.ts'
import { Binding, EndpointEdit, MemberEdit, NewEndpoint, NewMember, NewPool, PoolEdit } from '../model/egress/input.ts'
import {
  addMember,
  bindAccount,
  createPool,
  deletePool,
  editMember,
  editPool,
  listBindings,
  removeMember,
} from '../model/egress/pools.ts'
import { EGRESS_REASONS } from '../model/egress/route.ts'
import { resumeRouted } from '../model/egress/unrouted.ts'
import { holds } from '../model/users/permissions.ts'
import { testEgress } from '../upstream/egress-test.ts'
import { back } from './form-feedback.ts'

/** Everything about outbound proxies, without passwords. */
export const getEgress = async (c: Ctx) => {
  const { egressRouting, egressDefaultPoolId } = c.env.settings.current()
  return {
    routingEnabled: egressRouting,
    defaultPoolId: egressDefaultPoolId,
    endpoints: (await listEndpoints(c.env.db)).map((row) => endpointView(c, row)),
    pools: await mapInOrder(await listPools(c.env.db), (row) => poolView(c, row)),
    bindings: (await listBindings(c.env.db)).map((binding) => ({ ...binding, isActive: true })),
  }
}

/** The same with names and words, for the page. */
export const getEgressPage = async (c: Ctx): Promise<EgressPage> => {
  const all = await getEgress(c)
  const names = await accountNames(c.env.db, { hidesAccounts: false })
  return {
    ...all,
    pools: all.pools.map((pool) => ({ ...pool, reasonText: pool.reason && EGRESS_REASONS[pool.reason] })),
    bound: all.bindings.map((binding) => ({
      ...binding,
      accountName: names.get(binding.accountId) ?? binding.accountId,
    })),
  }
}

/** Pools to choose from; null: hidden from the user. */
export const poolChoices = async (c: Ctx): Promise<{ id: string; name: string }[] | null> =>
  holds(c.var.principal.grants, 'ops:write') ? (await listPools(c.env.db)).map(({ id, name }) => ({ id, name })) : null

/** How an account reaches ChatGPT, for its page; null: hidden from the user. */
export const routeView = async (c: Ctx, egressPoolId: string | null): Promise<RouteView | null> => {
  const pools = await poolChoices(c)
  if (pools === null) return null
  const { egress, settings, db } = c.env
  const route = egress.of(egressPoolId)
  const closed = egress.whyClosed(egressPoolId)
  const poolId = egressPoolId ?? (route.kind === 'environment' ? null : settings.current().egressDefaultPoolId)
  const firstId = route.kind === 'proxies' ? route.endpoints()[0]?.id : undefined
  const endpoint = (await listEndpoints(db)).find(({ id }) => id === firstId) ?? null
  return {
    pools,
    chosen: egressPoolId,
    isByEnvironment: route.kind === 'environment',
    poolName: pools.find(({ id }) => id === poolId)?.name ?? null,
    endpointName: endpoint?.name ?? null,
    exitAddress: endpoint?.lastTest?.exitAddress ?? null,
    problem: closed && EGRESS_REASONS[closed.reason],
  }
}

const endpointView = (c: Ctx, row: EgressEndpointRow) => {
  const { id, name, scheme, host, port, username, isActive, passwordSealed, lastTest } = row
  const failing = c.env.egress.failing().find((each) => each.id === id)
  return {
    id,
    name,
    scheme,
    host,
    port,
    username,
    isActive,
    hasPassword: passwordSealed !== null,
    lastTest: lastTest && { ...testView(lastTest), at: iso(lastTest.at) },
    failingSince: failing ? iso(failing.since) : null,
  }
}

const testView = ({ at: _, ...result }: NonNullable<EgressEndpointRow['lastTest']>) => result

const poolView = async (c: Ctx, { id, name, isActive }: EgressPoolRow) => {
  const members = (await listMembers(c.env.db)).filter(({ poolId }) => poolId === id)
  return {
    id,
    name,
    isActive,
    endpointIds: members.map(({ endpointId }) => endpointId),
    members: members.map(({ poolId: _, ...member }) => member),
    /** Why accounts cannot use it now; null: they can. */
    reason: c.env.egress.whyClosed(id)?.reason ?? null,
  }
}

export const showEgress = createHandlers(requires('ops:write'), async (c) => c.json(await getEgress(c)))

/** Host and password are security settings (spec §2). */
const guards = (audit: AuditEvent) => requires('security:write', { stepUp: true, audit })
const operates = (audit: AuditEvent) => requires('ops:write', { audit })

const goBack = (c: Ctx, value: object, done: AuditEvent) => proceed(c, value, `/settings/network?done=${done}#egress`)

/** Throws `name_taken`. */
export const addEndpoint = createHandlers(guards('proxy_endpoint_created'), body(NewEndpoint), async (c) => {
  const { sealer, random } = c.env
  const doing = { sealer, random, actor: actor(c) }
  const row = await commit(c.env.db, (tx) => createEndpoint(tx, c.req.valid('json'), doing))
  return goBack(c, endpointView(c, row), 'proxy_endpoint_created')
})

/** Throws `proxy_endpoint_not_found`, `name_taken`, `proxy_password_required`. */
export const changeEndpoint = createHandlers(guards('proxy_endpoint_updated'), body(EndpointEdit), async (c) => {
  const doing = { sealer: c.env.sealer, actor: actor(c) }
  const row = await commit(c.env.db, async (tx) => {
    const edited = await editEndpoint(tx, getPathId(c), c.req.valid('json'), doing)
    await resumeRouted(tx, doing.actor)
    return edited
  })
  return goBack(c, endpointView(c, row), 'proxy_endpoint_updated')
})

/** Throws `proxy_endpoint_not_found`. */
export const removeEndpoint = createHandlers(guards('proxy_endpoint_deleted'), async (c) => {
  await commit(c.env.db, (tx) => deleteEndpoint(tx, getPathId(c), actor(c)))
  return goBack(c, { status: 'deleted' }, 'proxy_endpoint_deleted')
})

/** Fetches ChatGPT's trace page through this endpoint alone, at most 8 s. Throws `proxy_endpoint_not_found`. */
export const testEndpoint = createHandlers(operates('proxy_endpoint_tested'), async (c) => {
  const { db, egress, proxyDeps, clock } = c.env
  const row = await getEndpoint(db, getPathId(c))
  const who = actor(c)
  const route = egress.through(row)
  const result = route
    ? await testEgress(proxyDeps.upstream, route)
    : { at: clock.now(), ok: false, statusCode: null, elapsedMs: 0, exitAddress: null, error: UNREADABLE }
  await commit(c.env.db, (tx) => recordTest(tx, row, result, { ...who, at: clock.now() }))
  return goBack(c, { endpointId: row.id, ...testView(result) }, 'proxy_endpoint_tested')
})

const UNREADABLE = `Not tested: ${EGRESS_REASONS.proxy_credentials_undecryptable}.`

/** Throws `name_taken`, `proxy_endpoint_not_found`, `proxy_pool_member_duplicate`. */
export const addPool = createHandlers(operates('proxy_pool_created'), body(NewPool), async (c) => {
  const doing = { random: c.env.random, actor: actor(c) }
  const row = await commit(c.env.db, (tx) => createPool(tx, c.req.valid('json'), doing))
  return goBack(c, await poolView(c, row), 'proxy_pool_created')
})

/** Throws `proxy_pool_not_found`, `name_taken`. */
export const changePool = createHandlers(operates('proxy_pool_updated'), body(PoolEdit), async (c) => {
  const row = await commit(c.env.db, (tx) => editPool(tx, getPathId(c), c.req.valid('json'), actor(c)))
  return goBack(c, await poolView(c, row), 'proxy_pool_updated')
})

/** Throws `proxy_pool_not_found`, `proxy_pool_in_use`. */
export const removePool = createHandlers(operates('proxy_pool_deleted'), async (c) => {
  await commit(c.env.db, (tx) => deletePool(tx, getPathId(c), actor(c)))
  return goBack(c, { status: 'deleted' }, 'proxy_pool_deleted')
})

/** Throws `proxy_pool_not_found`, `proxy_endpoint_not_found`, `proxy_pool_member_duplicate`. */
export const addPoolMember = createHandlers(operates('proxy_pool_member_added'), body(NewMember), async (c) => {
  const row = await commit(c.env.db, (tx) => addMember(tx, getPathId(c), c.req.valid('json'), actor(c)))
  return goBack(c, await poolView(c, row), 'proxy_pool_member_added')
})

const toMember = (c: Ctx) => ({ poolId: getPathId(c), endpointId: c.req.param('endpointId') ?? '' })

/** Throws `proxy_pool_not_found`, `proxy_endpoint_not_found`. */
export const changePoolMember = createHandlers(operates('proxy_pool_member_updated'), body(MemberEdit), async (c) => {
  const row = await commit(c.env.db, (tx) => editMember(tx, toMember(c), c.req.valid('json'), actor(c)))
  return goBack(c, await poolView(c, row), 'proxy_pool_member_updated')
})

/** Throws `proxy_pool_not_found`, `proxy_endpoint_not_found`. */
export const removePoolMember = createHandlers(operates('proxy_pool_member_removed'), async (c) => {
  const row = await commit(c.env.db, (tx) => removeMember(tx, toMember(c), actor(c)))
  return goBack(c, await poolView(c, row), 'proxy_pool_member_removed')
})

/** Throws `account_not_found`, `proxy_pool_not_found`. */
export const setBinding = createHandlers(operates('account_egress_changed'), body(Binding), async (c) => {
  const { poolId } = c.req.valid('json')
  const accountId = getPathId(c)
  await commit(c.env.db, (tx) => bindAccount(tx, accountId, poolId, actor(c)))
  return proceed(c, { accountId, poolId, isActive: poolId !== null }, back(c, 'account_egress_changed'))
})
