/** The route of an account: assigned pool, default pool, or closed; and the effect of a closed route. */
import { describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { noRoute } from '../../src/model/egress/route.ts'
import { codexBody, getEvents, type TestApp, type TestOptions, testApp } from '../support/app.ts'

const PATH = '/api/settings/upstream-proxy'
const NATIVE = 'POST /backend-api/codex/responses'

interface Made {
  id: string
}

const make = async (app: TestApp, what: string, json: object): Promise<string> =>
  ((await (await app.ask(`POST ${PATH}/${what}`, { json })).json()) as Made).id

/** `pools` pools with an endpoint each; the wire says over which proxy each call left. */
const world = async ({ pools = 1, ...options }: TestOptions & { pools?: number } = {}) => {
  const app = await testApp(options)
  const made = []
  for (let n = 0; n < pools; n++) {
    const endpointId = await make(app, 'endpoints', { name: `e${n}`, scheme: 'http', host: `p${n}.test`, port: 8080 })
    const poolId = await make(app, 'pools', { name: `p${n}`, endpointIds: [endpointId] })
    made.push({ endpointId, poolId })
  }
  const bind = (place: number, poolId: string | null) =>
    app.ask(`PUT ${PATH}/accounts/${app.members[place]?.id}/binding`, { json: { poolId } })
  const ways: string[] = []
  app.wire.before = async (_, init) => {
    const { proxy } = init as { proxy?: false | { url: string } } // as: the options of Bun's fetch
    ways.push(proxy ? new URL(proxy.url).port : 'direct')
  }
  const turn = (more: Record<string, unknown> = {}) => app.ask(NATIVE, { json: codexBody('hello', more) })
  const getWhy = async (response: Response) =>
    ((await response.json()) as { error: { code: string; message: string } }).error
  return { app, pools: made, bind, ways, turn, getWhy }
}

test('routing off: an account without a pool connects as the environment says, one with a pool by its pool', async () => {
  const { app, pools, bind, ways, turn } = await world({ accounts: 1 })
  await getEvents(await turn())
  expect(ways).toEqual(['direct'])
  await bind(0, pools[0]?.poolId ?? null)
  await getEvents(await turn())
  expect(ways[1]).toMatch(/^\d+$/)
  expect((await app.rows()).map(({ status, egressReason }) => [status, egressReason])).toEqual([
    ['ok', null],
    ['ok', null],
  ])
})

test('routing on: assigned pool, else default pool', async () => {
  const { app, pools, bind, ways, turn } = await world({ accounts: 1, pools: 2 })
  await app.change({ egressRouting: true, egressDefaultPoolId: pools[0]?.poolId ?? null })
  await getEvents(await turn())
  await bind(0, pools[1]?.poolId ?? null)
  await getEvents(await turn())
  await bind(0, pools[0]?.poolId ?? null)
  await getEvents(await turn())
  expect(ways).not.toContain('direct')
  expect([ways[0] === ways[1], ways[0] === ways[2]]).toEqual([false, true])
})

describe('fail closed', () => {
  test.each([
    ['default_pool_unconfigured', async ({ app }: World) => app.change({ egressRouting: true })],
    [
      'pool_unavailable',
      async ({ app, pools, bind }: World) => {
        await bind(0, pools[0]?.poolId ?? null)
        await app.ask(`PATCH ${PATH}/pools/${pools[0]?.poolId}`, { json: { isActive: false } })
      },
    ],
    [
      'pool_unavailable',
      async ({ app }: World) => {
        app.sqlite.run(`UPDATE accounts SET egress_pool_id = 'pool_gone'`)
        await app.restart()
      },
    ],
    [
      'pool_has_no_active_endpoints',
      async ({ app, pools, bind }: World) => {
        await bind(0, pools[0]?.poolId ?? null)
        await app.ask(`PATCH ${PATH}/endpoints/${pools[0]?.endpointId}`, { json: { isActive: false } })
      },
    ],
    [
      'pool_has_no_active_endpoints',
      async ({ app, pools }: World) => {
        const member = `${PATH}/pools/${pools[0]?.poolId}/members/${pools[0]?.endpointId}`
        await app.ask(`PATCH ${member}`, { json: { isActive: false } })
        await app.change({ egressRouting: true, egressDefaultPoolId: pools[0]?.poolId ?? null })
      },
    ],
    [
      'proxy_credentials_undecryptable',
      async ({ app, pools, bind }: World) => {
        await bind(0, pools[0]?.poolId ?? null)
        app.sqlite.run(
          `UPDATE egress_endpoints SET password_sealed = 'v1.00000000.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAA'`,
        )
        await app.restart()
      },
    ],
  ] as const)(
    '%s: nothing is sent, the error, the log and the simulator say why, and the account is not charged',
    async (reason, close) => {
      const made = await world({ accounts: 1 })
      await close(made)
      const { app, ways, turn, getWhy } = made
      const response = await turn()
      const error = await getWhy(response)
      expect([response.status, error.code]).toEqual([400, 'no_accounts']) // 400: the native client would retry a 503
      expect(error.message).toContain(reason)
      expect(response.headers.get('x-should-retry')).toBe('false')
      expect(ways).toEqual([])
      expect((await app.rows())[0]).toMatchObject({ status: 'error', egressReason: reason, accountId: null })
      const explained = (await (await app.ask('GET /api/explain?model=gpt-5.5')).json()) as {
        candidates: { skipped: string; egressReason: string | null }[]
      }
      expect(explained.candidates).toEqual([expect.objectContaining({ egressReason: reason })])
      const [account] = app.bindings.pool.all()
      expect([account?.state.status, account?.health.errors]).toEqual(['active', 0])
    },
  )

  test('an account with a route serves instead', async () => {
    const { app, bind, pools, turn, ways } = await world({ accounts: 2, pools: 1 })
    await bind(0, pools[0]?.poolId ?? null)
    await app.ask(`PATCH ${PATH}/pools/${pools[0]?.poolId}`, { json: { isActive: false } })
    await getEvents(await turn())
    expect([ways, (await app.rows())[0]?.accountId]).toEqual([['direct'], app.members[1]?.id ?? ''])
  })

  test('a conversation whose account has none fails with the reason, and uses no other account', async () => {
    const { app, bind, pools, turn, getWhy } = await world({ accounts: 2, pools: 1 })
    const anchored = { prompt_cache_key: 'talk', input: [{ type: 'compaction', encrypted_content: 'x' }] }
    await getEvents(await turn({ prompt_cache_key: 'talk' }))
    const owner = (await app.rows())[0]?.accountId
    await bind(owner === app.members[0]?.id ? 0 : 1, pools[0]?.poolId ?? null)
    await app.ask(`PATCH ${PATH}/pools/${pools[0]?.poolId}`, { json: { isActive: false } })
    const error = await getWhy(await turn(anchored))
    expect([error.code, error.message]).toEqual([
      'continuity_owner_unavailable',
      expect.stringContaining('pool_unavailable'),
    ])
    expect((await app.rows())[1]).toMatchObject({ egressReason: 'pool_unavailable' })
  })
})

type World = Awaited<ReturnType<typeof world>>

describe('a route that is down', () => {
  /** The first account's only endpoint does not connect. */
  const down = async (accounts = 2) => {
    const made = await world({ accounts, pools: 1 })
    const { app, bind, pools } = made
    await bind(0, pools[0]?.poolId ?? null)
    await app.prefer(app.members[0]?.id ?? '')
    const state = { isDown: true }
    app.wire.before = async (_, init) => {
      const { proxy } = init as { proxy?: false | { url: string } } // as: the options of Bun's fetch
      if (!proxy) return void made.ways.push('direct')
      made.ways.push('proxy')
      const route = app.bindings.egress.of(pools[0]?.poolId ?? null)
      if (route.kind === 'proxies') route.note(pools[0]?.endpointId ?? '', state.isDown ? 'it hung up' : null)
      if (state.isDown) throw noRoute('endpoints_unreachable')
    }
    return { ...made, state }
  }

  test('is not used for 30 s at a time, and its account is not charged', async () => {
    const { app, turn, ways, state } = await down()
    for (let n = 0; n < 3; n++) await getEvents(await turn())
    expect(ways).toEqual(['proxy', 'direct', 'direct', 'direct'])
    const [first] = app.bindings.pool.all()
    expect([first?.health.errors, first?.health.failing, first?.health.backoffUntil]).toEqual([0, null, null])
    await app.clock.advance('29s')
    await getEvents(await turn())
    expect(ways.splice(0)).toEqual(['proxy', 'direct', 'direct', 'direct', 'direct'])
    await app.clock.advance('2s')
    await getEvents(await turn())
    expect(ways.splice(0)).toEqual(['proxy', 'direct'])
    state.isDown = false
    await app.clock.advance('31s')
    await getEvents(await turn())
    expect(ways).toEqual(['proxy'])
    expect((await app.rows()).every(({ status, egressReason }) => status === 'ok' && egressReason === null)).toBe(true)
  })

  test('is named in the error with a retry time, when there is no other account', async () => {
    const { app, turn, getWhy } = await down(1)
    const first = await turn()
    expect([first.status, (await getWhy(first)).code]).toEqual([503, 'egress_unavailable'])
    const second = await turn()
    const error = await getWhy(second)
    expect([second.status, error.code, error.message]).toEqual([
      503,
      'no_accounts',
      expect.stringContaining('endpoints_unreachable'),
    ])
    expect(Number(second.headers.get('retry-after'))).toBe(30)
    expect((await app.rows()).map(({ egressReason }) => egressReason)).toEqual([
      'endpoints_unreachable',
      'endpoints_unreachable',
    ])
  })

  test('needs attention once it has failed for five minutes', async () => {
    const { app, turn, pools } = await down()
    const failing = async () => {
      const { endpoints } = (await (await app.ask(`GET ${PATH}`)).json()) as {
        endpoints: { failingSince: string | null }[]
      }
      return endpoints[0]?.failingSince !== null
    }
    for (let minute = 0; minute < 5; minute++) {
      await getEvents(await turn())
      expect(await failing()).toBe(false)
      await app.clock.advance('1m')
    }
    await getEvents(await turn())
    expect(await failing()).toBe(true)
    await app.ask(`PATCH ${PATH}/endpoints/${pools[0]?.endpointId}`, { json: { isActive: false } })
    expect(await failing()).toBe(false)
  })

  test('does not make a token refresh or a usage poll look like a fault of the account', async () => {
    const { app } = await down(1)
    const id = app.members[0]?.id ?? ''
    const { credentials } = app.bindings.proxyDeps
    const before = await credentials.fresh(id)
    await credentials.refresh(id, before.accessToken).catch(() => {})
    const [account] = app.bindings.pool.all()
    expect([account?.state.status, account?.health.errors]).toEqual(['active', 0])
  })
})

describe('a new account', () => {
  const added = async (app: TestApp) => {
    const { id } = await app.addAccount()
    return app.bindings.pool.get(id)?.state
  }

  test('starts paused with the reason while a proxy is required and it has no pool, and resumes with its first pool', async () => {
    const { app, pools } = await world({ accounts: 0 })
    await app.change({ egressRouting: true })
    const state = await added(app)
    expect([state?.status, state?.evidence]).toEqual(['paused', expect.stringContaining('default_pool_unconfigured')])
    const id = app.bindings.pool.all()[0]?.id
    await app.ask(`PUT ${PATH}/accounts/${id}/binding`, { json: { poolId: pools[0]?.poolId } })
    expect(app.bindings.pool.get(id ?? '')?.state.status).toBe('active')
  })

  test('resumes when the default pool is set, and one that a user paused stays paused', async () => {
    const { app, pools } = await world({ accounts: 1 })
    await app.ask(`POST /api/accounts/${app.members[0]?.id}/pause`)
    await app.ask('PATCH /api/settings', { json: { egressRouting: true } })
    expect((await added(app))?.status).toBe('paused')
    await app.ask('PATCH /api/settings', { json: { egressDefaultPoolId: pools[0]?.poolId } })
    expect(app.bindings.pool.all().map(({ state }) => state.status)).toEqual(['paused', 'active'])
  })

  test('resumes when the endpoint of its pool is turned on', async () => {
    const { app, pools } = await world({ accounts: 0 })
    await app.change({ egressRouting: true, egressDefaultPoolId: pools[0]?.poolId ?? null })
    const all = (await (await app.ask(`GET ${PATH}`)).json()) as { pools: { id: string; endpointIds: string[] }[] }
    const endpointId = all.pools.find(({ id }) => id === pools[0]?.poolId)?.endpointIds[0]
    await app.ask(`PATCH ${PATH}/endpoints/${endpointId}`, { json: { isActive: false } })
    expect((await added(app))?.status).toBe('paused')
    await app.ask(`PATCH ${PATH}/endpoints/${endpointId}`, { json: { isActive: true } })
    expect(app.bindings.pool.all().map(({ state }) => state.status)).toEqual(['active'])
  })

  test('starts active with a default pool, and while routing is off', async () => {
    const { app, pools } = await world({ accounts: 0 })
    expect((await added(app))?.status).toBe('active')
    await app.change({ egressRouting: true, egressDefaultPoolId: pools[0]?.poolId ?? null })
    expect((await added(app))?.status).toBe('active')
    await commit(app.db, (tx) => tx.run(sql`DELETE FROM egress_members`))
    const state = await added(app)
    expect([state?.status, state?.evidence]).toEqual([
      'paused',
      expect.stringContaining('pool_has_no_active_endpoints'),
    ])
  })
})
