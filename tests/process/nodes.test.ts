/** Three servers on one PostgreSQL share the limits of keys, also when one of them is killed or stands still. */
import { afterAll, describe, expect, test } from 'bun:test'
import { MAY_SKIP } from '../support/postgres.ts'
import { expectPostgresTotalsMatchRows } from './books.ts'
import { askMany, type Nodes, outputOf, reached, startNodes, stopPostgres, streamsAt, workerOf } from './nodes-world.ts'

afterAll(stopPostgres)

const LIMIT = Number(process.env.KEY_LIMIT ?? 400) // more in the soak
/** How often, at random moments. */
const TIMES = Number(process.env.NODE_DEATHS ?? 1) // more in the soak
const UNCAPPED = ['proxyAccountStreamLimit=0']

const limitRow = async ({ sql }: Nodes) => {
  const [row] = await sql.unsafe('SELECT current_value AS used, leases FROM api_key_limits')
  return { used: Number(row.used), leases: row.leases }
}

describe.skipIf(MAY_SKIP)('a key limit over three nodes', () => {
  test('admits exactly its maximum, by the count of the upstream too', async () => {
    await using world = await startNodes({ settings: UNCAPPED, limits: [`requests:daily:${LIMIT}`] })
    const outcome = await askMany(world, 2 * LIMIT)
    expect(outcome, outputOf(world)).toEqual({ admitted: LIMIT, rejected: LIMIT, other: [] })
    expect((await streamsAt(world)).streams).toBe(LIMIT)
    expect(await Promise.all(world.servers.map((server) => server.stop()))).toEqual([0, 0, 0])
    expect(await limitRow(world)).toEqual({ used: LIMIT, leases: '{}' })
    await expectPostgresTotalsMatchRows(world.sql)
  }, 600_000)
})

describe.skipIf(MAY_SKIP).each(Array.from({ length: TIMES }, (_, n) => n + 1))(
  'a node that dies or stands still (%d)',
  (n) => {
    const moment = TIMES === 1 ? 100 : 20 + Math.floor(Math.random() * 300)

    test('kill -9: no more requests reach ChatGPT than the limit allows', async () => {
      await using world = await startNodes({ settings: UNCAPPED, limits: ['requests:daily:400'] })
      const { servers } = world
      const run = askMany(world, 500, 100)
      await reached(world, moment)
      await servers[1]!.kill()
      await run
      const others = { ...world, servers: [servers[0]!, servers[2]!] }
      const after = await askMany(others, 400, 100)
      expect(after.other, outputOf(world)).toEqual([])
      expect(after.rejected).toBeGreaterThan(0)
      await world.start(1) // its new number has nothing to do with what the dead one had
      const last = await askMany(world, 60, 20)
      expect([last.admitted, last.other]).toEqual([0, []])
      const { streams } = await streamsAt(world)
      console.log(`kill -9 at ${moment} (${n}): ${streams} of 400 requests reached the upstream`)
      expect(streams).toBeLessThanOrEqual(400)
      expect(streams).toBeGreaterThan(200)
      for (const server of servers) expect(await server.stop()).toBe(0)
      await expectPostgresTotalsMatchRows(world.sql)
    }, 240_000)

    test.each([
      ['briefly', 1500],
      ['until PostgreSQL ends its session', 8000],
    ])(
      'SIGSTOP and SIGCONT, %s: exactly the limit',
      async (_, ms) => {
        await using world = await startNodes({ settings: UNCAPPED, limits: ['requests:daily:400'] })
        const { servers } = world
        const frozen = workerOf(servers[1]!)
        const run = askMany(world, 600, 60)
        await reached(world, Math.min(moment, 300))
        process.kill(frozen, 'SIGSTOP')
        await Bun.sleep(ms)
        process.kill(frozen, 'SIGCONT')
        const first = await run
        const after = await askMany(world, 400, 60)
        expect([...first.other, ...after.other], outputOf(world)).toEqual([])
        expect(first.admitted + after.admitted).toBe(400)
        expect((await streamsAt(world)).streams).toBe(400)
        for (const server of servers) expect(await server.stop()).toBe(0)
        await expectPostgresTotalsMatchRows(world.sql)
      },
      240_000,
    )
  },
)
