/** Three nodes refresh the tokens of the same accounts, while nodes are killed: no refresh token is used twice. */
import { afterAll, expect, test } from 'bun:test'
import { MAY_SKIP } from '../support/postgres.ts'
import { SEED, seededRandom } from '../support/property.ts'
import { until } from '../support/until.ts'
import { answers } from '../support/upstream/script.ts'
import { askMany, type Nodes, outputOf, startNodes, stopPostgres } from './nodes-world.ts'

afterAll(stopPostgres)

const REFRESHES = Number(process.env.REFRESHES ?? 60) // more in the soak
const ACCOUNTS = Math.max(10, REFRESHES / 20)
/** A node is killed in one of so many rounds. */
const ROUNDS_PER_KILL = 3
const LATEST_KILL_MS = 300

const expireTokens = async ({ sim }: Nodes): Promise<void> => {
  const accounts = (await (await fetch(`${sim.url}/_sim/accounts`)).json()) as { chatgptAccountId: string }[] // as: its own format
  for (const { chatgptAccountId } of accounts)
    await fetch(`${sim.url}/_sim/accounts/${chatgptAccountId}/expire`, { method: 'POST' })
}

const countExchanges = async ({ sim }: Nodes): Promise<number> =>
  (await sim.look<{ path: string }[]>('requests')).filter(({ path }) => path === '/oauth/token').length

/** Accounts that a node was refreshing when it was killed. Whether ChatGPT has replaced their tokens is unknown. */
const countInterrupted = async ({ sql }: Nodes): Promise<number> => {
  const [row] = await sql.unsafe("SELECT count(*)::int AS n FROM facts WHERE name LIKE 'refreshing_%'")
  return row.n
}

const countUnusable = async (world: Nodes): Promise<number> => {
  const answer = await fetch(`${world.servers[0]!.url}/api/accounts`)
  const { accounts } = (await answer.json()) as { accounts: { status: string }[] } // as: its own format
  return accounts.filter(({ status }) => status !== 'active').length
}

test.skipIf(MAY_SKIP)(
  'only a kill during an exchange can cost an account',
  async () => {
    await using world = await startNodes({ accounts: ACCOUNTS, settings: ['proxyAccountStreamLimit=0'] })
    await world.sim.answer(answers.bulk(1, 5))
    console.log(`Repeat with SEED=${SEED}`)
    const random = seededRandom(SEED)
    let [kills, exchanges, interrupted] = [0, 0, 0]
    for (let round = 1; exchanges < REFRESHES && interrupted < ACCOUNTS; round++) {
      await expireTokens(world)
      const mayKill = round % ROUNDS_PER_KILL === 0 && interrupted <= ACCOUNTS / 2
      const victim = mayKill ? kills++ % world.servers.length : null
      const asking = askMany(world, 6 * ACCOUNTS, 3 * ACCOUNTS)
      if (victim !== null) {
        await Bun.sleep(random() * LATEST_KILL_MS)
        await world.servers[victim]!.kill()
      }
      const outcome = await asking
      // a request may fail that meets only interrupted accounts, or whose refresh waits too long for the database
      const failed = outcome.other.filter((one) => !one.includes('"upstream_auth_failed"'))
      if (victim === null) expect(failed, outputOf(world)).toEqual([])
      else await world.start(victim)
      const before = exchanges
      exchanges = await countExchanges(world)
      interrupted = await countInterrupted(world)
      if (victim === null) expect(exchanges).toBeGreaterThan(before)
    }
    console.log(`${exchanges} refreshes, ${kills} kills, ${interrupted} of ${ACCOUNTS} accounts interrupted`)
    expect(kills).toBeGreaterThan(0)
    await until(
      async () => (await countUnusable(world)) <= interrupted,
      () => outputOf(world),
    )
    expect(await world.sim.look<string[]>('oddities')).toEqual([])
  },
  900_000,
)
