/** PostgreSQL is gone for a time: requests go on, nothing is lost, no limit is passed, and the nodes recover alone. */
import { afterAll, describe, expect, test } from 'bun:test'
import { freePort } from '../support/free-port.ts'
import { MAY_SKIP } from '../support/postgres.ts'
import { runCommand } from '../support/spawn.ts'
import { until } from '../support/until.ts'
import { expectPostgresTotalsMatchRows } from './books.ts'
import { askMany, type Failure, type Nodes, outputOf, startNodes, stopPostgres, streamsAt } from './nodes-world.ts'

afterAll(stopPostgres)

const OUTAGE_MS = Number(process.env.OUTAGE_MS ?? 10_000) // longer in the soak
const LIMIT = 400

const PUT_SETTING = (days: number) => ({
  signal: AbortSignal.timeout(60_000),
  method: 'PUT',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ requestLogRetentionDays: days }),
})

/** Until `isOver`, one request after another on each node; counts by status. */
const askOn = async ({ servers, key }: Nodes, isOver: () => boolean) => {
  const outcomes = await Promise.all(
    servers.map(async (server) => {
      const sum = { admitted: 0, rejected: 0, other: [] as Failure[] }
      while (!isOver()) {
        const one = await askMany({ servers: [server], key }, 1, 1)
        sum.admitted += one.admitted
        sum.rejected += one.rejected
        sum.other.push(...one.other)
        await Bun.sleep(100)
      }
      return sum
    }),
  )
  return {
    admitted: outcomes.reduce((sum, { admitted }) => sum + admitted, 0),
    rejected: outcomes.reduce((sum, { rejected }) => sum + rejected, 0),
    other: outcomes.flatMap(({ other }) => other),
  }
}

const storedRequests = async ({ sql }: Nodes): Promise<number> => {
  const [row] = await sql.unsafe("SELECT count(*)::int AS n FROM requests WHERE status = 'ok'")
  return row.n
}

const untilRecovered = async (world: Nodes, days: number): Promise<void> => {
  const [first] = world.servers
  const explain = () => outputOf(world)
  await until(async () => (await fetch(`${first!.url}/api/settings`, PUT_SETTING(days))).status === 200, explain)
  for (const { url } of world.servers)
    await until(async () => {
      const answer = await fetch(`${url}/api/settings`)
      const settings = (await answer.json()) as { requestLogRetentionDays?: number } // as: its own format
      return settings.requestLogRetentionDays === days
    }, explain)
}

describe.skipIf(MAY_SKIP)('PostgreSQL', () => {
  test.each([
    ['killed and started again', 'kill'],
    ['frozen and thawed', 'freeze'],
  ] as const)(
    '%s',
    async (_, how) => {
      await using world = await startNodes({
        settings: ['proxyAccountStreamLimit=0'],
        limits: [`requests:daily:${LIMIT}`],
      })
      const { servers, postgres } = world
      await using _back = { [Symbol.asyncDispose]: () => postgres.resume() }
      const before = await askMany(world, 60, 12)
      expect(before, outputOf(world)).toEqual({ admitted: 60, rejected: 0, other: [] })
      if (how === 'kill') await postgres.kill()
      else postgres.freeze()
      let isOver = false
      const running = askOn(world, () => isOver)
      const began = performance.now()
      if (how === 'kill') await expectClearErrors(world)
      for (const { url } of servers)
        expect((await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(60_000) })).status).toBe(200)
      await Bun.sleep(OUTAGE_MS - (performance.now() - began))
      isOver = true
      const during = await running
      await postgres.resume()
      console.log(`PostgreSQL ${how} for ${OUTAGE_MS} ms: ${during.admitted} admitted, ${during.rejected} rejected`)
      expect(during.other, outputOf(world)).toEqual([])
      expect(during.admitted).toBeGreaterThan(15) // what the nodes had leased of the limit
      await untilRecovered(world, 21)
      const after = await askMany(world, LIMIT, 30)
      expect(after.other, outputOf(world)).toEqual([])
      const admitted = before.admitted + during.admitted + after.admitted
      expect(admitted).toBe(LIMIT)
      expect((await streamsAt(world)).streams).toBe(LIMIT)
      await until(async () => (await storedRequests(world)) === LIMIT)
      for (const server of servers) expect(await server.stop()).toBe(0)
      await expectPostgresTotalsMatchRows(world.sql)
      for (const server of servers) {
        expect(server.output()).not.toContain('unhandled')
        expect(server.output()).not.toContain('uncaught')
      }
    },
    240_000,
  )
})

/** The reason is only shown to users who may see it, as far as that is known without the database. */
const CLEAR = /PostgreSQL cannot be reached|The server log says why/

/** Checks the errors of the dashboard's API and pages. */
const expectClearErrors = async ({ servers }: Nodes): Promise<void> => {
  const { url } = servers[0]!
  const put = await fetch(`${url}/api/settings`, PUT_SETTING(22))
  expect([put.status, await put.json()]).toEqual([
    503,
    { error: { code: 'database_unavailable', message: expect.stringMatching(CLEAR) } },
  ])
  const log = await fetch(`${url}/api/request-logs`)
  expect([log.status, await log.json()]).toEqual([
    503,
    { error: { code: 'database_unavailable', message: expect.stringMatching(CLEAR) } },
  ])
  for (const path of ['/dashboard', '/requests', '/keys']) {
    const page = await fetch(url + path, { headers: { accept: 'text/html' } })
    const html = await page.text()
    expect([path, page.status]).toEqual([path, 503])
    expect(html).toMatch(CLEAR)
    expect(html).not.toMatch(/\bat .*\.tsx?:\d+/)
  }
}

test.skipIf(MAY_SKIP)(
  'without PostgreSQL a server does not start, and says why',
  async () => {
    const password = 'secret-in-the-url'
    const env = { SLUICE_DATABASE_URL: `postgres://sluice:${password}@127.0.0.1:${freePort()}/sluice` }
    const { exitCode, stderr, stdout } = await runCommand(['serve'], { env: { ...env, PORT: String(freePort()) } })
    expect([exitCode, stdout]).toEqual([1, ''])
    expect(stderr).toBe(
      'sluice: PostgreSQL cannot be reached: Failed to connect. Check that it runs and that this machine can connect to the address in SLUICE_DATABASE_URL.\n',
    )
    expect(stderr).not.toContain(password)
  },
  60_000,
)
