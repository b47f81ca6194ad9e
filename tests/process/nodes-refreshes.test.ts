/** Three nodes refresh the tokens of the same accounts, while nodes are killed: no refresh token is used twice. */
import { afterAll, expect, test } from 'bun:test'
import { MAY_SKIP } from '../support/postgres.ts'
import { SEED, seededRandom } from '../support/property.ts'
import { until } from '../support/until.ts'
import { answers } from '../support/upstream/script.ts'
import { askMany, type Failure, type Nodes, outputOf, startNodes, stopPostgres } from './nodes-world.ts'

afterAll(stopPostgres)

const REFRESHES = Number(process.env.REFRESHES ?? 60) // more in the soak
const ACCOUNTS = Math.max(10, REFRESHES / 20)
/** A node is killed in one of so many rounds. */
const ROUNDS_PER_KILL = 3
/** After the first exchange has begun. Exchanges then take as long, so that the node is likely to have one. */
const LATEST_KILL_MS = 300

const expireTokens = async ({ sim }: Nodes, { exchangeMs }: { exchangeMs: number }): Promise<void> => {
  const accounts = (await (await fetch(`${sim.url}/_sim/accounts`)).json()) as { chatgptAccountId: string }[] // as: its own format
  const slow = JSON.stringify({ next: { on: 'token', delayHeadersMs: exchangeMs } })
  for (const { chatgptAccountId } of accounts) {
    const url = `${sim.url}/_sim/accounts/${chatgptAccountId}`
    if (exchangeMs > 0) await fetch(`${url}/faults`, { method: 'POST', body: slow })
    await fetch(`${url}/expire`, { method: 'POST' })
  }
}

const countExchanges = async ({ sim }: Nodes): Promise<number> =>
  (await sim.look<{ path: string }[]>('requests')).filter(({ path }) => path === '/oauth/token').length

/** Accounts that a node was refreshing when it was killed. Whether ChatGPT has replaced their tokens is unknown. */
const getInterrupted = async ({ sql }: Nodes): Promise<Set<string>> => {
  const rows: { name: string }[] = await sql.unsafe("SELECT name FROM facts WHERE name LIKE 'refreshing_%'")
  return new Set(rows.map(({ name }) => name.slice('refreshing_'.length)))
}

/** A request may fail whose every attempt needed the token of such an account. */
const expectOnlyInterrupted = async (world: Nodes, failure: Failure, interrupted: Set<string>): Promise<void> => {
  const { requestId, status, text } = failure
  let tried: string[] = []
  await until(async () => {
    const rows: { id: string }[] = await world.sql.unsafe(`SELECT attempts.account_id AS id FROM attempts
      JOIN requests ON requests.id = attempts.request_row_id WHERE requests.request_id = '${requestId}'`)
    tried = rows.map(({ id }) => id)
    return tried.length > 0
  }, `${status} ${text}`)
  expect({ status, text, usable: tried.filter((id) => !interrupted.has(id)) }, outputOf(world)).toEqual({
    status: 502,
    text: expect.stringContaining('"upstream_auth_failed"'),
    usable: [],
  })
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
    let [kills, exchanges, interrupted] = [0, 0, new Set<string>()]
    const isOver = () => (exchanges >= REFRESHES && interrupted.size > 0) || interrupted.size === ACCOUNTS
    for (let round = 1; !isOver(); round++) {
      const mayKill = round % ROUNDS_PER_KILL === 0 && interrupted.size <= ACCOUNTS / 2
      const victim = mayKill ? kills++ % world.servers.length : null
      const killed = victim === null ? null : world.servers[victim]!
      await expireTokens(world, { exchangeMs: killed ? LATEST_KILL_MS : 0 })
      const asking = askMany(world, 6 * ACCOUNTS, 3 * ACCOUNTS)
      if (killed) {
        await until(async () => (await countExchanges(world)) > exchanges)
        await Bun.sleep(random() * LATEST_KILL_MS)
        await killed.kill()
      }
      const { other } = await asking
      if (victim !== null) await world.start(victim)
      const before = exchanges
      exchanges = await countExchanges(world)
      interrupted = await getInterrupted(world)
      if (victim === null) expect(exchanges).toBeGreaterThan(before)
      const failed = other.filter(({ server, status }) => status !== null || server !== killed)
      for (const failure of failed) await expectOnlyInterrupted(world, failure, interrupted)
    }
    console.log(`${exchanges} refreshes, ${kills} kills, ${interrupted.size} of ${ACCOUNTS} accounts interrupted`)
    expect(kills).toBeGreaterThan(0)
    await until(
      async () => (await countUnusable(world)) <= interrupted.size,
      () => outputOf(world),
    )
    expect(await world.sim.look<string[]>('oddities')).toEqual([])
  },
  900_000,
)
