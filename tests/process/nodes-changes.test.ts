/** What is changed on one of three nodes counts on the others; jobs, token refreshes and sign-ins happen once. */
import { afterAll, describe, expect, test } from 'bun:test'
import { MAY_SKIP } from '../support/postgres.ts'
import { runCommand } from '../support/spawn.ts'
import { until } from '../support/until.ts'
import { answers } from '../support/upstream/script.ts'
import { type Nodes, outputOf, startNodes, stopPostgres } from './nodes-world.ts'
import { sendTurn } from './world.ts'

afterAll(stopPostgres)

/** An answered request of the dashboard's API; `body` is what it returned. */
const ask = async <T = Record<string, unknown>>(
  base: string,
  route: string,
  json?: object,
  headers: Record<string, string> = {},
) => {
  const [method, path] = route.split(' ')
  const response = await fetch(`${base}${path}`, {
    method: method!,
    headers: { 'content-type': 'application/json', ...headers },
    ...(json && { body: JSON.stringify(json) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (text.startsWith('{') ? JSON.parse(text) : text) as T,
  } // as: the caller knows its type
}

/** Fails with the answer if the change is rejected: otherwise the test would wait for a change that never reaches the others. */
const change = async <T = Record<string, unknown>>(...args: Parameters<typeof ask>) => {
  const answered = await ask<T>(...args)
  expect(answered.status, answered.text).toBeWithin(200, 300)
  return answered
}

const turnStatus = async (url: string, key: string) => {
  const response = await sendTurn(url, key)
  await response.text()
  return response.status
}

/** Milliseconds until `holds` on every other node. */
const untilOnOthers = async ({ servers }: Nodes, holds: (url: string) => Promise<boolean>): Promise<number> => {
  const began = performance.now()
  for (const { url } of servers.slice(1)) await until(() => holds(url))
  return performance.now() - began
}

/** Changes a setting on all nodes, `parallel` at a time, until `stop`. Returns the commits per second. */
const commitMuch = ({ servers }: Nodes, parallel: number) => {
  let isOver = false
  let count = 0
  const began = performance.now()
  const workers = Array.from({ length: parallel }, async (_, worker) => {
    for (let n = 0; !isOver; n++) {
      const days = 10 + ((n + worker) % 300)
      const { status, text } = await ask(servers[(n + worker) % servers.length]!.url, 'PUT /api/settings', {
        auditRetentionDays: days,
      })
      if (status === 200) count++
      else if (!text.includes('"busy"')) throw new Error(`${status} ${text}`) // others held the lock too long
    }
  })
  return {
    stop: async () => {
      isOver = true
      await Promise.all(workers)
      return Math.round((count * 1000) / (performance.now() - began))
    },
  }
}

/** Changes on the first node; each is awaited on the others. */
const changeMuch = async (world: Nodes): Promise<Record<string, number>> => {
  const { servers, key } = world
  const { url } = servers[0]!
  const took: Record<string, number> = {}
  const hasDays = (days: number) => async (other: string) =>
    (await ask(other, 'GET /api/settings')).body.requestLogRetentionDays === days
  await change(url, 'PUT /api/settings', { requestLogRetentionDays: 30 })
  await untilOnOthers(world, hasDays(30)) // what they had before would be taken for the change
  await change(url, 'PUT /api/settings', { requestLogRetentionDays: 17 })
  took.setting = await untilOnOthers(world, hasDays(17))
  const made = await change<{ id: string; key: string }>(url, 'POST /api/api-keys', { name: 'made on the first node' })
  took['new key'] = await untilOnOthers(world, async (other) => (await turnStatus(other, made.body.key)) === 200)
  const regenerated = await change<{ key: string }>(url, `POST /api/api-keys/${made.body.id}/regenerate`)
  took['new secret'] = await untilOnOthers(world, async (other) => (await turnStatus(other, made.body.key)) === 401)
  expect(await turnStatus(servers[1]!.url, regenerated.body.key)).toBe(200)
  await change(url, `PATCH /api/api-keys/${made.body.id}`, { isActive: false })
  took['key switched off'] = await untilOnOthers(
    world,
    async (other) => (await turnStatus(other, regenerated.body.key)) === 401,
  )
  const { accounts } = (await ask<{ accounts: { accountId: string }[] }>(url, 'GET /api/accounts')).body
  const accountIds = accounts.map(({ accountId }) => accountId)
  await change(url, 'POST /api/accounts/pause', { accountIds })
  took['accounts paused'] = await untilOnOthers(world, async (other) => (await turnStatus(other, key)) !== 200)
  await change(url, `POST /api/accounts/${accountIds[0]}/reactivate`)
  took['account resumed'] = await untilOnOthers(world, async (other) => (await turnStatus(other, key)) === 200)
  await change(url, 'POST /api/firewall/ips', { ipAddress: '192.0.2.1' })
  took.firewall = await untilOnOthers(world, async (other) => (await turnStatus(other, key)) === 403)
  await change(url, 'DELETE /api/firewall/ips/192.0.2.1')
  took['firewall off'] = await untilOnOthers(world, async (other) => (await turnStatus(other, key)) === 200)
  return took
}

describe.skipIf(MAY_SKIP)('a change on one node', () => {
  test('counts on the others, also while many commits run', async () => {
    await using world = await startNodes()
    const quiet = await changeMuch(world)
    const { accounts } = (await ask<{ accounts: { accountId: string }[] }>(world.servers[0]!.url, 'GET /api/accounts'))
      .body
    for (const { accountId } of accounts.slice(1))
      await change(world.servers[0]!.url, `POST /api/accounts/${accountId}/reactivate`)
    const load = commitMuch(world, 4)
    const busy = await changeMuch(world)
    const rate = await load.stop()
    const shown = (took: Record<string, number>) =>
      Object.entries(took)
        .map(([what, ms]) => `${what} ${Math.round(ms)}`)
        .join(', ')
    console.log(`ms until the other nodes had it: ${shown(quiet)}\nat ${rate} commits/s: ${shown(busy)}`)
    expect(rate).toBeGreaterThan(0)
    expect(outputOf(world)).not.toContain('ERROR')
  }, 240_000)

  test('signs users in and out on all of them', async () => {
    await using world = await startNodes({ accounts: 1 })
    const { servers, spawn } = world
    const made = await runCommand(['user', 'create-admin', 'admin'], { ...spawn[0]!, stdin: 'a long password' })
    expect(made.exitCode).toBe(0)
    const [url, other, third] = servers.map((server) => server.url)
    const signedIn = await ask(url!, 'POST /api/dashboard-auth/password/login', {
      username: 'admin',
      password: 'a long password',
    })
    expect(signedIn.status).toBe(200)
    const cookie = signedIn.headers
      .getSetCookie()
      .map((one) => one.split(';')[0])
      .join('; ')
    for (const node of [other!, third!])
      expect((await ask(node, 'GET /api/settings', undefined, { cookie })).status).toBe(200)
    expect((await ask(other!, 'POST /api/dashboard-auth/logout', {}, { cookie })).status).toBe(200)
    for (const node of [url!, third!])
      await until(async () => (await ask(node, 'GET /api/settings', undefined, { cookie })).status === 401)
  }, 120_000)

  test('eight wrong passwords a minute are checked, whichever node gets them', async () => {
    await using world = await startNodes({ accounts: 1 })
    const { servers, spawn } = world
    const made = await runCommand(['user', 'create-admin', 'admin'], { ...spawn[0]!, stdin: 'a long password' })
    expect(made.exitCode).toBe(0)
    const guess = async (_: unknown, n: number) => {
      const wrong = { username: 'admin', password: 'a wrong password' }
      return (await ask(servers[n % 3]!.url, 'POST /api/dashboard-auth/password/login', wrong)).status
    }
    const statuses = await Promise.all(Array.from({ length: 40 }, guess))
    expect(statuses.filter((status) => status === 401)).toHaveLength(8)
    expect(statuses.filter((status) => status === 429)).toHaveLength(32)
  }, 120_000)
})

/** The number of the node that runs the jobs, as PostgreSQL lists its locks. */
const leaderOf = async ({ sql }: Nodes): Promise<number | null> => {
  const [row] = await sql.unsafe(`SELECT node.objid::int AS number
    FROM pg_locks jobs JOIN pg_locks node ON node.pid = jobs.pid AND node.classid = 3 AND node.locktype = 'advisory'
    WHERE jobs.locktype = 'advisory' AND jobs.classid = 2 AND jobs.objid = (hashtext('jobs')::bigint & 4294967295)::oid
      AND jobs.granted AND jobs.database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
  return row?.number ?? null
}

describe.skipIf(MAY_SKIP)('what happens once', () => {
  test('jobs run on one node; when it is killed or stands still, another one runs them', async () => {
    await using world = await startNodes({ accounts: 3, isInOrder: true })
    const { servers, sim } = world
    await until(async () => (await leaderOf(world)) !== null)
    expect(await leaderOf(world)).toBe(1) // the node that started first
    await until(async () => (await usageReads(sim)).length >= 3)
    await Bun.sleep(1000) // others would read it as well
    expect(new Set(await usageReads(sim)).size).toBe(3)
    expect(await usageReads(sim)).toHaveLength(3)
    let began = performance.now()
    await servers[0]!.kill()
    await until(async () => ((await leaderOf(world)) ?? 1) !== 1)
    console.log(`leader killed: another one after ${Math.round(performance.now() - began)} ms`)
    expect(performance.now() - began).toBeLessThan(5000)
    const leader = (await leaderOf(world))!
    const frozen = servers[leader - 1]!.workers().at(-1)!
    began = performance.now()
    process.kill(frozen, 'SIGSTOP')
    await until(async () => ((await leaderOf(world)) ?? leader) !== leader)
    console.log(`leader frozen: another one after ${Math.round(performance.now() - began)} ms`)
    expect(performance.now() - began).toBeLessThan(15_000)
    process.kill(frozen, 'SIGCONT')
    await until(() => servers[leader - 1]!.output().includes('lost the lock for the jobs'))
    expect(await leaderOf(world)).not.toBe(leader)
  }, 240_000)

  test('a token is refreshed once, also when three nodes need it at the same moment', async () => {
    await using world = await startNodes({ accounts: 1 })
    const { sim, key, servers } = world
    await sim.answer(answers.bulk(3, 20))
    const [account] = (await (await fetch(`${sim.url}/_sim/accounts`)).json()) as { chatgptAccountId: string }[] // as: its own format
    const tell = (what: string, body: object) =>
      fetch(`${sim.url}/_sim/accounts/${account?.chatgptAccountId}/${what}`, {
        method: 'POST',
        body: JSON.stringify(body),
      })
    for (let round = 1; round <= 3; round++) {
      await tell('faults', { next: { on: 'token', delayHeadersMs: 1000 } })
      await tell('expire', {})
      const texts = await Promise.all(servers.map(async ({ url }) => (await sendTurn(url, key)).text()))
      for (const text of texts) expect(text, outputOf(world)).toContain('response.completed')
      const asked = await sim.look<{ path: string }[]>('requests')
      expect(asked.filter(({ path }) => path === '/oauth/token')).toHaveLength(round)
    }
    expect(await sim.look<string[]>('oddities')).toEqual([])
  }, 120_000)
})

/** The accounts whose usage was read. */
const usageReads = async (sim: Nodes['sim']): Promise<string[]> =>
  (await sim.look<{ path: string; account: string }[]>('requests'))
    .filter(({ path }) => path.endsWith('/wham/usage'))
    .map(({ account }) => account)
