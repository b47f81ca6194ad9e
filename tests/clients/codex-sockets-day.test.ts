/** The real Codex CLI with sockets while Sluice changes: a restart, changed settings, and a simulated day. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { until } from '../support/until.ts'
import { faults } from '../support/upstream/faults.ts'
import { answers } from '../support/upstream/script.ts'
import {
  FIRST,
  getAccounts,
  getConnections,
  getCreates,
  getHandshakes,
  getVisits,
  ON_HTTP,
  ON_SOCKETS,
  quiet,
  SECOND,
  startSession,
  TWO_ACCOUNTS,
  talk,
} from './support/session.ts'
import type { World } from './support/world.ts'

const GREETING = /^Hello from account-\d@example\.test$/
const IN_AN_HOUR_MS = Date.now() + 3_600_000

// Longer than the CLI's timeout, so that a hang is reported with its output.
setDefaultTimeout(120_000)

test('after a restart of Sluice between two turns the conversation continues on its account', async () => {
  await using session = await startSession({ settings: { routingStrategy: 'round_robin' } })
  const { world, thread } = session
  expect(await thread.say('hello')).toMatchObject(quiet(GREETING))
  await world.restart()
  for (const prompt of ['hello again', 'and again']) expect(await thread.say(prompt)).toMatchObject(quiet(GREETING))

  const [account] = world.accountsUsed()
  expect(getCreates(world)).toMatchObject([
    { connection: 1, account, isPrewarm: true },
    { connection: 1, account },
    { connection: 2, account, previous: null },
    { connection: 2, account, items: ['message'] },
  ])
  expect(getVisits(world)).toEqual(['101', '101'])
  const log = await world.log(4)
  expect(log).toEqual(log.map(() => expect.objectContaining({ ...ON_SOCKETS, accountName: account, attemptCount: 1 })))
})

test('the service is reloaded between two turns and during one: the user notices nothing', async () => {
  await using session = await startSession({ settings: { routingStrategy: 'round_robin' } })
  const { world, thread } = session
  expect(await thread.say('hello')).toMatchObject(quiet(GREETING))
  const [account] = world.accountsUsed()
  for (const prompt of ['hello again', 'and again']) {
    await world.reload()
    expect(await thread.say(prompt)).toMatchObject(quiet(GREETING))
  }
  world.upstream.script(() => answers.bulk(60, 20, { dripMs: 50 }))
  const long = thread.say('take your time')
  const before = getCreates(world).length
  await until(
    async () => getCreates(world).length > before,
    () => 'The turn did not begin.',
  )
  await world.reload()
  expect(await long).toMatchObject(quiet(/./))
  world.upstream.script(null)
  expect(await thread.say('and now?')).toMatchObject(quiet(GREETING))

  const creates = getCreates(world)
  expect(creates.map((create) => create.account)).toEqual(creates.map(() => account!))
  expect(creates.map(({ connection }) => connection)).toEqual([1, 1, 2, 3, 3, 4])
  const log = await world.log(6)
  expect(log).toEqual(log.map(() => expect.objectContaining({ ...ON_SOCKETS, accountName: account, attemptCount: 1 })))
})

test('the transport setting changes between two turns: every turn is answered', async () => {
  await using session = await startSession(TWO_ACCOUNTS)
  const { world } = session
  for (const transport of ['auto', 'http', 'websocket', 'auto']) {
    await world.api('PATCH', '/api/settings', { upstreamStreamTransport: transport })
    await talk(session, FIRST, 'hello', 'hello again')
  }
  // After a 426 the CLI stays with HTTP for the rest of the conversation.
  expect(getVisits(world)).toEqual(['101', '426', ...Array(6).fill('POST 200')])
  expect(getConnections(world)).toEqual([1, 1, 1, null, null, 2, 3, 4, 5])
  expect(getHandshakes(world)).toEqual([101, 101, 101, 101, 101])
  expect(new Set(world.accountsUsed())).toEqual(new Set([FIRST.email]))
  const carried = { ...ON_HTTP, upstreamTransport: 'websocket' }
  expect(await world.log(9)).toMatchObject([
    { ...ON_SOCKETS, requestKind: 'prewarm' },
    ON_SOCKETS,
    ON_SOCKETS,
    ON_HTTP, // requested in full, which leaves no row of its own
    ON_HTTP,
    ...Array(4).fill(carried),
  ])
})

test('the transport setting changes between two conversations: each uses the one at its start', async () => {
  const settings = { ...TWO_ACCOUNTS.settings, upstreamStreamTransport: 'http' }
  await using session = await startSession({ ...TWO_ACCOUNTS, settings })
  const { world, editor } = session
  await talk(session, FIRST, 'hello')
  for (const transport of ['websocket', 'http']) {
    await world.api('PATCH', '/api/settings', { upstreamStreamTransport: transport })
    await talk({ thread: await editor.startThread() }, FIRST, 'hello')
  }
  expect(getVisits(world)).toEqual(['426', 'POST 200', '101', '426', 'POST 200'])
  expect(getConnections(world)).toEqual([null, 1, 1, null])
  expect(await world.log(4)).toMatchObject([ON_HTTP, ON_SOCKETS, ON_SOCKETS, ON_HTTP])
})

/** The accounts of the eight requests of the morning and of the three after the fault. */
const MORNING = Array(8).fill(1)
const DAYS = [
  {
    fault: 'reaches its usage limit, so that the other one takes over',
    compactsRemotely: false, // a history that only this account can read would stay with it
    strike: (world: World) => getAccounts(world).first.always(faults.usageLimit({ resetsAt: IN_AN_HOUR_MS })),
    successor: SECOND,
    handshakes: [101, 101, 101],
    connections: [...MORNING, 1, 2, 3, 3],
  },
  {
    fault: 'loses its connection and its token',
    compactsRemotely: true,
    strike: (world: World) => {
      getAccounts(world).first.expireAccessToken()
      world.upstream.closeSockets(1011)
    },
    successor: FIRST,
    handshakes: [101, 401, 101, 101],
    connections: [...MORNING, 3, 4, 4],
  },
]

test.each(DAYS)('a day in the life: tools, a compaction, an account that $fault, a restart', async (day) => {
  await using session = await startSession({ ...TWO_ACCOUNTS, compactsRemotely: day.compactsRemotely })
  const { world, thread } = session
  for (const word of ['morning', 'noon', 'evening']) {
    const seen = await thread.say(`run: echo good-${word}`)
    expect(seen).toMatchObject({ status: 'completed', complaints: [] })
    expect(seen.commands).toMatchObject([{ output: `good-${word}\n`, exitCode: 0 }])
    expect(seen.text).toContain(`good-${word}`)
  }
  expect(await thread.compact()).toMatchObject({ status: 'completed', complaints: [], compactions: 1 })
  expect(getConnections(world)).toEqual(MORNING)
  day.strike(world)
  await talk(session, day.successor, 'hello')
  await world.restart()
  await talk(session, day.successor, 'hello again', 'good night')

  expect(getConnections(world)).toEqual(day.connections)
  expect(getHandshakes(world)).toEqual(day.handshakes)
  expect(getVisits(world)).toEqual(['101', '101'])
  const log = await world.log(11)
  expect(log).toEqual(log.map(() => expect.objectContaining(ON_SOCKETS)))
  expect(log.map(({ accountName }) => accountName)).toEqual([
    ...MORNING.map(() => FIRST.email),
    ...Array(3).fill(day.successor.email),
  ])
  expect(log.map(({ movedAccount }) => movedAccount).indexOf(true)).toBe(day.successor === SECOND ? MORNING.length : -1)
})
