/** `serve --processes 3`: several server processes on one port and one database. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from '../support/spawn.ts'
import { until } from '../support/until.ts'
import { expectTotalsMatchRows } from './books.ts'
import { sendTurn, startWorld, type World } from './world.ts'

const UNCAPPED = ['proxyAccountStreamLimit=0']

interface Outcome {
  admitted: number
  rejected: number
  /** Neither answered nor rejected by the limit. */
  other: string[]
}

const LIMIT = Number(process.env.KEY_LIMIT ?? 400) // more in the soak

/** Once all three listen. */
const startThree = async (options: Parameters<typeof startWorld>[0] = {}): Promise<World> => {
  const world = await startWorld({ ...options, args: ['--processes', '3'], isBusy: true })
  await until(
    () => (world.server.output().match(/ listening /g)?.length ?? 0) >= 3,
    () => world.server.output(),
  )
  return world
}

/** `count` requests, at most `parallel` of them at a time. */
const askMany = async ({ server, key }: World, count: number, parallel = 200): Promise<Outcome> => {
  const outcome: Outcome = { admitted: 0, rejected: 0, other: [] }
  let next = 0
  const worker = async () => {
    while (next++ < count) {
      try {
        const response = await sendTurn(server.url, key)
        const text = await response.text()
        if (response.status === 200) outcome.admitted++
        else if (response.status === 429 && text.includes('limit exceeded')) outcome.rejected++
        else outcome.other.push(`${response.status} ${text.slice(0, 200)}`)
      } catch (error) {
        outcome.other.push(String(error))
      }
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))
  return outcome
}

/** The server processes below the supervisor. */
const workersOf = (supervisor: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
        const [, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        return Number(parent) === supervisor && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--worker')
      } catch {
        return false // it has ended
      }
    })

const streamsAt = async ({ sim }: World) => sim.look<{ streams: number; peakStreams: number }>('stats')

const limitRow = ({ spawn: { dataDir } }: World) => {
  const db = new Database(join(dataDir, 'sluice.db'), { readonly: true })
  try {
    return db
      .query<{ used: number; leases: string }, []>('SELECT current_value AS used, leases FROM api_key_limits')
      .get()
  } finally {
    db.close()
  }
}

describe('a key limit over three processes', () => {
  test('admits exactly its maximum, by the count of the upstream too', async () => {
    await using world = await startThree({ settings: UNCAPPED, limits: [`requests:daily:${LIMIT}`] })
    expect(workersOf(world.server.pid)).toHaveLength(3)
    const outcome = await askMany(world, 2 * LIMIT)
    expect(outcome).toEqual({ admitted: LIMIT, rejected: LIMIT, other: [] })
    expect((await streamsAt(world)).streams).toBe(LIMIT)
    expect(await world.server.stop()).toBe(0)
    expect(limitRow(world)).toEqual({ used: LIMIT, leases: '{}' })
    expectTotalsMatchRows(world.spawn.dataDir)
  }, 600_000)
})

describe('a process that dies or stands still', () => {
  test('kill -9: no more requests reach ChatGPT than the limit allows, and the process is started again', async () => {
    await using world = await startThree({
      settings: UNCAPPED,
      limits: ['requests:daily:400'],
    })
    const [victim] = workersOf(world.server.pid)
    const run = askMany(world, 500, 100)
    await reached(world, 100)
    process.kill(victim!, 'SIGKILL')
    await run
    const after = await askMany(world, 400, 100)
    expect(after.other).toEqual([])
    expect(after.rejected).toBeGreaterThan(0)
    const { streams } = await streamsAt(world)
    expect(streams).toBeLessThanOrEqual(400)
    expect(streams).toBeGreaterThan(200)
    await until(() => workersOf(world.server.pid).length === 3)
    expect(world.server.output()).toContain('a server process ended unexpectedly and is started again')
    expect(await world.server.stop()).toBe(0)
    expectTotalsMatchRows(world.spawn.dataDir)
  }, 120_000)

  test('SIGSTOP and SIGCONT: exactly the limit', async () => {
    await using world = await startThree({
      settings: UNCAPPED,
      limits: ['requests:daily:400'],
    })
    const [victim] = workersOf(world.server.pid)
    const run = askMany(world, 600, 60)
    await reached(world, 80)
    process.kill(victim!, 'SIGSTOP')
    await Bun.sleep(1500)
    process.kill(victim!, 'SIGCONT')
    const first = await run
    const after = await askMany(world, 400, 60)
    expect([...first.other, ...after.other]).toEqual([])
    expect(first.admitted + after.admitted).toBe(400)
    expect((await streamsAt(world)).streams).toBe(400)
  }, 120_000)
})

const PARALLEL = 20

test.each([
  ['tokens', 'total_tokens:daily:60000', 60_000 / 500],
  ['cost', 'cost_usd:weekly:0.5', 0.5 / 0.005],
])(
  'a limit by %s is used up, and passed by no more than the last requests',
  async (_, limit, most) => {
    await using world = await startThree({ settings: UNCAPPED, limits: [limit] })
    await world.sim.answer({
      items: [{ kind: 'text', text: 'Hello.' }],
      usage: { inputTokens: 400, outputTokens: 100 },
    })
    const { admitted, other } = await askMany(world, 200, PARALLEL)
    expect(other).toEqual([])
    let last = 0
    await until(async () => {
      last += (await askMany(world, 1, 1)).admitted // what requests reserved and did not use
      return admitted + last >= most
    })
    expect(admitted + last).toBeLessThanOrEqual(most + PARALLEL) // those that ran when it was used up
    expect(await world.server.stop()).toBe(0)
    expectTotalsMatchRows(world.spawn.dataDir)
  },
  120_000,
)

test('an account never runs more streams than its limit', async () => {
  const settings = ['proxyAccountStreamLimit=4', 'capacityWaitSeconds=60']
  await using world = await startThree({ accounts: 1, settings })
  await world.sim.answer({ items: [{ kind: 'text', text: 'A slow answer of some words.' }], dripMs: 20 })
  const outcome = await askMany(world, 60, 60)
  expect(outcome).toEqual({ admitted: 60, rejected: 0, other: [] })
  expect((await streamsAt(world)).peakStreams).toBe(4)
}, 120_000)

describe('the dashboard', () => {
  let world: World

  beforeAll(async () => {
    world = await startThree()
  }, 120_000)

  afterAll(() => world?.[Symbol.asyncDispose]())

  test('a change in one process soon counts in all of them', async () => {
    const { url } = world.server
    const put = await fetch(`${url}/api/settings`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ requestLogRetentionDays: 17 }),
    })
    expect(put.status).toBe(200)
    await until(async () => {
      const seen = await onFreshConnections(
        30,
        async () => (await (await fetch(`${url}/api/settings`, CLOSE)).json()) as { requestLogRetentionDays: number },
      )
      return seen.every(({ requestLogRetentionDays }) => requestLogRetentionDays === 17)
    })
  }, 60_000)

  test('a request that one process served is announced on the pages of all', async () => {
    const { server, key } = world
    const streams = await onFreshConnections(9, () => openEvents(server.url))
    await (await sendTurn(server.url, key)).text()
    await until(() => streams.every(({ text }) => /^data: .*logs/m.test(text())))
    for (const { close } of streams) close()
  }, 60_000)
})

test('eight wrong passwords a minute are checked, whichever process gets them', async () => {
  await using world = await startThree()
  const { url, dataDir } = world.server
  const made = await runCommand(['user', 'create-admin', 'admin'], { dataDir, stdin: 'a long password' })
  expect(made.exitCode).toBe(0)
  const guess = async () => {
    const answer = await fetch(`${url}/api/dashboard-auth/password/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ username: 'admin', password: 'a wrong password' }),
    })
    await answer.text()
    return answer.status
  }
  const statuses = await Promise.all(Array.from({ length: 40 }, guess))
  expect(statuses.filter((status) => status === 401)).toHaveLength(8)
  // 503: the database was busy, so the password was not checked
  expect(statuses.filter((status) => status !== 401 && status !== 429 && status !== 503)).toEqual([])
}, 120_000)

test('the number of processes must make sense', async () => {
  for (const value of ['0', '1.5', 'many', '65']) {
    const { exitCode, stderr } = await runCommand(['serve', '--processes', value])
    expect([exitCode, stderr]).toEqual([2, 'sluice: --processes must be a whole number from 1 to 64.\n'])
  }
  const { exitCode, stderr } = await runCommand(['serve', '--port', '80'])
  expect([exitCode, stderr]).toEqual([
    2,
    'sluice: serve takes only --processes. Set HOST and PORT in the environment.\n',
  ])
}, 60_000)

const CLOSE = { headers: { connection: 'close' } }

/** The kernel shares connections out, so that thirty of them reach every process. */
const onFreshConnections = <T>(count: number, work: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, work))

const openEvents = async (url: string) => {
  const stop = new AbortController()
  const response = await fetch(`${url}/api/events`, { signal: stop.signal })
  if (response.status !== 200) throw new Error(`The stream of changes was rejected: ${response.status}`)
  let text = ''
  const read = async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true })
  }
  read().catch(() => {}) // closed at the end
  return { text: () => text, close: () => stop.abort() }
}

const reached = async (world: World, streams: number): Promise<void> => {
  await until(async () => (await streamsAt(world)).streams >= streams)
}
