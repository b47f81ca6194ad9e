/**
 * The real Codex CLI with sockets, as an editor uses it, without failures: turns, tools and compaction on one
 * connection.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { until } from '../support/until.ts'
import { answers, defaultAnswer, type TokenUsage } from '../support/upstream/script.ts'
import {
  getConnections,
  getCreates,
  getHandshakes,
  getVisits,
  installSocketCodex,
  ON_SOCKETS,
  quiet,
  startSession,
} from './support/session.ts'
import { getItems, type LogRow, startWorld, type World } from './support/world.ts'

const GREETING = /^Hello from account-\d@example\.test$/
/** A conversation that stays on its account does so against this strategy, not by its grace. */
const ROUND_ROBIN = { settings: { routingStrategy: 'round_robin' } }
/** Above 90 % of the window of every model here: the client compacts before it continues. */
const NEARLY_FULL = { inputTokens: 260_000, outputTokens: 100 }

// Longer than the CLI's timeout, so that a hang is reported with its output.
setDefaultTimeout(120_000)

test('ten turns of a conversation are ten frames on one socket, each with only the new items', async () => {
  await using session = await startSession(ROUND_ROBIN)
  const { world, thread, editor } = session
  const texts: string[] = []
  for (let turn = 1; turn <= 10; turn += 1) {
    const seen = await thread.say(`hello, the ${turn}. time`)
    texts.push(seen.text) // before it is matched, because an asymmetric matcher writes its value into the received object
    expect(seen).toMatchObject(quiet(GREETING))
  }
  expect(new Set(texts)).toEqual(new Set([`Hello from ${world.accountsUsed()[0]}`]))
  await expectOneChain(world, 11)
  const [prewarm, first, ...later] = getCreates(world).map(({ items }) => items)
  expect(prewarm).toEqual([])
  expect(first?.[0]).toBe('additional_tools')
  expect(later).toEqual(Array(9).fill(['message']))

  await editor[Symbol.asyncDispose]()
  await until(() => world.upstream.openSockets === 0, world.output)
  await until(() => world.door.visits.every(({ isOpen }) => !isOpen), world.output)
})

test('a terminal conversation has a socket per run, and stays on its account', async () => {
  await using world = await startWorld(ROUND_ROBIN)
  await using codex = installSocketCodex(world)
  const first = await codex.exec('hello')
  const other = await codex.exec('hello from another conversation')
  const resumed = await codex.resume(first.threadId, 'and again')
  for (const run of [first, other, resumed]) expect(run).toMatchObject({ exitCode: 0, complaints: [] })
  expect(other.text).not.toBe(first.text)
  expect(resumed.text).toBe(first.text)

  const log = await world.log(6)
  expect(log).toEqual(log.map(() => expect.objectContaining(ON_SOCKETS)))
  expect(getConnections(world)).toEqual([1, 1, 2, 2, 3, 3])
  expect(getCreates(world).map(({ previous }) => previous)).toEqual(
    log.map(({ requestKind }, index) => (requestKind === 'prewarm' ? null : (log[index - 1]?.responseId ?? ''))),
  )
  expect(getVisits(world)).toEqual(['101', '101', '101'])
  expect(world.upstream.oddities).toEqual([])
})

test.each([
  ['responses-lite', 'gpt-6.1-sol', 'custom_tool_call_output'],
  ['classic', 'gpt-5.5', 'function_call_output'],
])('a command runs and only its output is sent on the socket (%s)', async (_shape, model, outputType) => {
  await using session = await startSession({ ...ROUND_ROBIN, model })
  const { world, thread } = session
  const seen = await thread.say('run: echo ping-$((40 + 2))')
  expect(seen).toMatchObject(quiet(/^The tool said: .*ping-42/s))
  expect(seen.commands).toMatchObject([{ output: 'ping-42\n', exitCode: 0 }])
  await expectOneChain(world, 3)
  expect(getCreates(world)[2]?.items).toEqual([outputType])
  expect(JSON.stringify(getItems(world.turns()[2])[0]?.output)).toContain('ping-42')
})

test('a conversation that fills the context window is compacted between two turns and within one', async () => {
  await using session = await startSession({ ...ROUND_ROBIN, compactsRemotely: true })
  const { world, thread } = session
  world.upstream.script((turn) => ({ ...defaultAnswer(turn), usage: NEARLY_FULL }))
  expect(await thread.say('hello')).toMatchObject(quiet(GREETING, { compactions: 0 }))
  world.upstream.script(null)
  expect(await thread.say('hello again')).toMatchObject(quiet(GREETING, { compactions: 1 }))

  let usage: Partial<TokenUsage> | null = NEARLY_FULL
  world.upstream.script((turn) => {
    if (turn.input.at(-1)?.type === 'compaction_trigger') return null
    if (!usage) return answers.text('It was done before.') // the tool output was in the compaction
    const call = { ...defaultAnswer(turn), usage }
    usage = null
    return call
  })
  const seen = await thread.say('run: echo ping-$((40 + 2))')
  expect(seen).toMatchObject(quiet('It was done before.', { compactions: 1 }))
  expect(seen.commands).toMatchObject([{ output: 'ping-42\n', exitCode: 0 }])

  const log = await world.log(7)
  expectOneAccount(world, log)
  const [, first, asked, compacted, call, askedAgain, compactedAgain] = getCreates(world)
  expect(asked).toMatchObject({ previous: log[1]?.responseId, items: ['compaction_trigger'] })
  expect(compacted?.previous).toBeNull()
  expect(compacted?.items.slice(first?.items.length).toSorted()).toEqual(['compaction', 'message'])
  expect(call).toMatchObject({ previous: log[3]?.responseId, items: ['message'] })
  expect(askedAgain).toMatchObject({
    previous: log[4]?.responseId,
    items: ['custom_tool_call_output', 'compaction_trigger'],
  })
  expect(compactedAgain?.previous).toBeNull()
  expect(compactedAgain?.items.filter((type) => type === 'compaction')).toHaveLength(1)
})

test.each([
  ['by ChatGPT', true, 'compaction_trigger'],
  ['by the client', false, 'message'],
])('the user compacts the conversation, %s', async (_by, compactsRemotely, asked) => {
  await using session = await startSession({ ...ROUND_ROBIN, compactsRemotely })
  const { world, thread } = session
  expect(await thread.say('hello')).toMatchObject(quiet(GREETING))
  expect(await thread.compact()).toMatchObject({ status: 'completed', complaints: [], compactions: 1 })
  expect(await thread.say('hello again')).toMatchObject(quiet(GREETING))
  expect(await thread.say('and again')).toMatchObject(quiet(GREETING))

  const log = await world.log(5)
  expectOneAccount(world, log)
  const [, , compaction, compacted, later] = getCreates(world)
  expect(compaction).toMatchObject({ previous: log[1]?.responseId, items: [asked] })
  expect(compacted?.previous).toBeNull()
  expect(compacted?.items.includes('compaction')).toBe(compactsRemotely)
  expect(later).toMatchObject({ previous: log[3]?.responseId, items: ['message'] })
})

/** Every request of the log went over the one socket on either side, all for one account. */
function expectOneAccount(world: World, log: LogRow[]): void {
  const [accountName] = world.accountsUsed()
  expect(log).toEqual(log.map(() => expect.objectContaining({ ...ON_SOCKETS, accountName, attemptCount: 1 })))
  const kinds = getCreates(world).map(({ items }) => (items.at(-1) === 'compaction_trigger' ? 'compaction' : 'normal'))
  expect(log.map(({ requestKind }) => requestKind)).toEqual(['prewarm', ...kinds.slice(1)])
  expect(getCreates(world).map(({ isPrewarm }) => isPrewarm)).toEqual(
    log.map(({ requestKind }) => requestKind === 'prewarm'),
  )
  expect(getConnections(world)).toEqual(log.map(() => 1))
  expect(getHandshakes(world)).toEqual([101])
  expect(getVisits(world)).toEqual(['101'])
}

/** …and each continued the response before it. */
async function expectOneChain(world: World, rows: number): Promise<void> {
  const log = await world.log(rows)
  expectOneAccount(world, log)
  const previous = getCreates(world).map((create) => create.previous)
  expect(previous).toEqual([null, ...log.slice(0, -1).map(({ responseId }) => responseId)])
}
