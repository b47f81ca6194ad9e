/** Each outcome of a turn over each pair of transports looks the same to the client and in the log. */
import { describe, expect, test } from 'bun:test'
import { parseEvents } from '../support/app.ts'
import type { TestSocket } from '../support/socket-client.ts'
import { until } from '../support/until.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'
import { answers } from '../support/upstream/script.ts'
import {
  create,
  expectNothingLeft,
  getEnds,
  getLimits,
  getTypes,
  leave,
  NATIVE,
  open,
  PUBLIC,
  prefer,
  type SocketWorld,
  startSocketWorld,
} from './ground.ts'

type Transport = 'http' | 'websocket'

interface Pairing {
  path: string
  downstream: Transport
  upstream: Transport
}

/** The client's result: the events of a turn, or an error from before it began. */
interface Outcome {
  refusal: { status: number; code: string } | null
  types: string[]
  last: Record<string, unknown>
}

/** A running turn. */
interface Asked {
  outcome: Promise<Outcome>
  /** The client disconnects. */
  leave: () => void
  socket: TestSocket | null
}

/** Events of the default answer that commit nothing: `response.created` and `response.in_progress`. */
const HELD = 2
const INPUT_TOKENS = 100
const OUTPUT_TOKENS = 20
const USAGE = { usage: { inputTokens: INPUT_TOKENS, outputTokens: OUTPUT_TOKENS } }
const BROKEN = { code: 'server_error', message: 'It broke.' }

const askOverHttp = (service: SocketWorld, path: string, key: string): Asked => {
  const client = new AbortController()
  const { type: _, ...body } = create()
  const ask = async (): Promise<Outcome> => {
    const response = await fetch(service.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'user-agent': 'test' },
      body: JSON.stringify(body),
      signal: client.signal,
    })
    const text = await response.text()
    if (response.status !== 200) return refused(response.status, JSON.parse(text).error.code)
    const events = parseEvents(text)
    return { refusal: null, types: getTypes(events), last: events.at(-1) ?? {} }
  }
  return { outcome: ask(), leave: () => client.abort(), socket: null }
}

const askOnSocket = (socket: TestSocket): Asked => {
  const ask = async (): Promise<Outcome> => {
    const events = await socket.turn(create())
    const last = events.at(-1) ?? {}
    const { status, error } = last as { status?: number; error?: { code: string } } // as: an error frame has both
    if (status !== undefined && error) return refused(status, error.code)
    return { refusal: null, types: getTypes(events), last }
  }
  return { outcome: ask(), leave: () => socket.terminate(), socket }
}

const refused = (status: number, code: string): Outcome => ({ refusal: { status, code }, types: [], last: {} })

/** An open native socket uses HTTP upstream when the setting changes; a new one would be rejected. */
const start = async ({ path, downstream, upstream }: Pairing, service: SocketWorld, key: string): Promise<Asked> => {
  const headers = { authorization: `Bearer ${key}` }
  const socket = downstream === 'websocket' ? await open(service, { path, headers }) : null
  await service.change({ upstreamStreamTransport: upstream })
  return socket ? askOnSocket(socket) : askOverHttp(service, path, key)
}

interface Stage {
  pairing: Pairing
  service: SocketWorld
  key: string
  asked: Asked
}

/** Two accounts, of which the first is always used before the second. */
const stage = async (pairing: Pairing, getFaults: { first?: Fault; second?: Fault } = {}) => {
  const service = await startSocketWorld({ accounts: 2, settings: { apiKeyAuthEnabled: true } })
  const [first, second] = service.members
  await prefer(service, first!.id) // there are two
  if (getFaults.first) first!.sim.always(getFaults.first)
  if (getFaults.second) second!.sim.always(getFaults.second)
  service.upstream.script(() => answers.text('Hello there, all of you.', USAGE))
  const { key } = await service.key({
    limits: [
      { limitType: 'total_tokens', limitWindow: 'daily', maxValue: 1_000_000, modelFilter: '' },
      { limitType: 'requests', limitWindow: 'daily', maxValue: 1000, modelFilter: '' },
    ],
  })
  const asked = await start(pairing, service, key)
  return Object.assign({ pairing, service, key, asked }, { [Symbol.asyncDispose]: () => service.stop() })
}

interface Expected {
  status: 'ok' | 'error' | 'cancelled'
  account: 0 | 1
  errorCode?: string | null
  attempts?: number
  tokens: { inputTokens: number; outputTokens: number } | null | 'estimated'
  /** A clean end leaves the connection of a session to its next turn. */
  keepsSocket: boolean
}

/** One row has the result, the limits have counted it, and nothing is left of the turn. */
const expectSettled = async ({ pairing, service, key, asked }: Stage, expected: Expected): Promise<void> => {
  const isSession = pairing.downstream === 'websocket' && pairing.upstream === 'websocket'
  await expectNothingLeft(service, { upstreamSockets: isSession && expected.keepsSocket ? 1 : 0 })
  const rows = await service.rows()
  expect(rows).toHaveLength(1)
  const [row] = rows
  expect(row).toMatchObject({
    route: pairing.path,
    transport: pairing.downstream,
    upstreamTransport: pairing.upstream,
    status: expected.status,
    accountId: service.members[expected.account]?.id ?? '',
    errorCode: expected.errorCode ?? null,
    ...(expected.attempts !== undefined && { attempts: expected.attempts }),
    ...(typeof expected.tokens === 'object' && (expected.tokens ?? { inputTokens: null, outputTokens: null })),
  })
  if (expected.tokens === 'estimated') expect(row?.inputTokens).toBeGreaterThan(INPUT_TOKENS)
  const used = (row?.inputTokens ?? 0) + (row?.outputTokens ?? 0)
  expect(getLimits(service, key)).toEqual({
    total_tokens: { settled: used, reserved: 0 },
    requests: { settled: row?.inputTokens === null ? 0 : 1, reserved: 0 },
  })
  if (asked.socket) await leave(service, asked.socket)
  await expectNothingLeft(service)
}

const MEASURED = { inputTokens: INPUT_TOKENS, outputTokens: OUTPUT_TOKENS }
const served = (more: Partial<Expected> = {}): Expected => ({
  status: 'ok',
  account: 0,
  tokens: MEASURED,
  keepsSocket: true,
  ...more,
})

/** The client got one complete response and cannot tell that anything failed before it. */
const expectWhole = ({ types, refusal }: Outcome, end = 'response.completed'): void => {
  expect(refusal).toBeNull()
  expect(getEnds(types)).toEqual([end])
  expect(types.at(-1)).toBe(end)
  expect(types.filter((type) => type === 'response.created')).toHaveLength(1)
}

/**
 * After the commit the client gets one terminal event, with the code in the log. OpenAI's own streams announce a failure
 * with an `error` event; on a socket that would end the turn twice.
 */
const expectBrokenOff = ({ path, downstream }: Pairing, { types, last, refusal }: Outcome, code: string): void => {
  expect(refusal).toBeNull()
  expect(types.length).toBeGreaterThan(HELD)
  const isAnnounced = path === PUBLIC && downstream === 'http'
  expect(getEnds(types)).toEqual([...(isAnnounced ? ['error'] : []), 'response.failed'])
  expect(last).toMatchObject({ response: { status: 'failed', error: { code } } })
}

const pairings: Pairing[] = [NATIVE, PUBLIC].flatMap((path) =>
  (['http', 'websocket'] as const).flatMap((downstream) =>
    (['http', 'websocket'] as const).map((upstream) => ({ path, downstream, upstream })),
  ),
)

/**
 * Half of the outcomes run on four of the pairings, the other half on the other four. Each four have every combination of
 * two: of path and client, of path and upstream, and of client and upstream.
 */
const isOfFirstHalf = ({ path, downstream, upstream }: Pairing): boolean =>
  (path === NATIVE) === (downstream === upstream)

for (const pairing of pairings)
  describe.concurrent(`${pairing.path}: ${pairing.downstream} client, ${pairing.upstream} upstream`, () => {
    const how = isOfFirstHalf(pairing) ? 'fin' : 'reset'
    const afterEvents = isOfFirstHalf(pairing) ? 1 : HELD + 2

    if (isOfFirstHalf(pairing)) {
      test('completed, after the first event', async () => {
        await using turn = await stage(pairing)
        expectWhole(await turn.asked.outcome)
        await expectSettled(turn, served({ attempts: 1 }))
      })

      test('incomplete, the terminal event is the first with content', async () => {
        await using turn = await stage(pairing, { first: { incomplete: { reason: 'max_output_tokens' } } })
        turn.service.upstream.script(() => answers.items([], USAGE))
        expectWhole(await turn.asked.outcome, 'response.incomplete')
        await expectSettled(turn, served({ attempts: 1 }))
      })

      test('failed before the first event: another account serves, unnoticed', async () => {
        const gone = { code: 'usage_limit_reached', message: 'The usage limit has been reached' }
        await using turn = await stage(pairing, { first: { failAfterCreated: gone } })
        expectWhole(await turn.asked.outcome)
        await expectSettled(turn, served({ account: 1, attempts: 2 }))
      })

      test('failed on every account before the first event: a status, and no event', async () => {
        const failing = faults.usageLimit({ resetsAt: Date.now() + 3_600_000 })
        await using turn = await stage(pairing, { first: failing, second: failing })
        expect(await turn.asked.outcome).toMatchObject({
          refusal: { status: 429, code: 'usage_limit_reached' },
          types: [],
        })
        await expectSettled(turn, {
          ...FAILED,
          account: 1,
          errorCode: 'usage_limit_reached',
          attempts: 2,
          tokens: null,
          keepsSocket: false,
        })
      })

      test('an error event after the first event ends it as a failure', async () => {
        await using turn = await stage(pairing, { first: { errorEvent: { ...BROKEN, afterEvents: HELD + 2 } } })
        expectBrokenOff(pairing, await turn.asked.outcome, 'server_error')
        await expectSettled(turn, { ...FAILED, errorCode: 'server_error', keepsSocket: true })
      })
    } else {
      test('completed, the terminal event is the first with content', async () => {
        await using turn = await stage(pairing)
        turn.service.upstream.script(() => answers.items([], USAGE))
        expectWhole(await turn.asked.outcome)
        await expectSettled(turn, served({ attempts: 1 }))
      })

      test('incomplete, after the first event', async () => {
        await using turn = await stage(pairing, { first: { incomplete: { reason: 'max_output_tokens' } } })
        const outcome = await turn.asked.outcome
        expectWhole(outcome, 'response.incomplete')
        expect(outcome.last).toMatchObject({ response: { incomplete_details: { reason: 'max_output_tokens' } } })
        await expectSettled(turn, served({ attempts: 1 }))
      })

      test('failed before any event, by a status: another account serves, unnoticed', async () => {
        await using turn = await stage(pairing, { first: faults.usageLimit() })
        expectWhole(await turn.asked.outcome)
        await expectSettled(turn, served({ account: 1, attempts: 2 }))
      })

      test('failed after the first event: the client gets the failure, without another attempt', async () => {
        await using turn = await stage(pairing, { first: { failAfterCreated: { ...BROKEN, afterEvents: HELD + 2 } } })
        expectBrokenOff(pairing, await turn.asked.outcome, 'server_error')
        await expectSettled(turn, { ...FAILED, errorCode: 'server_error', keepsSocket: true })
      })
    }

    test(`dropped before the first event (${how}): another account serves`, async () => {
      await using turn = await stage(pairing, { first: { dropAfter: { events: 1, how } } })
      expectWhole(await turn.asked.outcome)
      await expectSettled(turn, served({ account: 1, attempts: 4 }))
    })

    test(`dropped after the first event (${how}): one terminal event`, async () => {
      await using turn = await stage(pairing, {
        first: { dripMs: how === 'reset' ? 150 : 2, dropAfter: { events: HELD + 3, how } },
      }) // a reset overtakes unread data
      expectBrokenOff(pairing, await turn.asked.outcome, 'stream_incomplete')
      await expectSettled(turn, { ...FAILED, errorCode: 'stream_incomplete' })
    })

    test(`cancelled by the client after ${afterEvents} events: the upstream is released`, async () => {
      await using turn = await stage(pairing, { first: { silence: { afterEvents } } })
      const { asked, service } = turn
      void asked.outcome.catch(() => {}) // it left
      await until(() => service.upstream.requests.at(-1)?.eventsSent === afterEvents, 'the upstream silent')
      if (afterEvents > HELD && asked.socket)
        await until(() => (asked.socket?.events.length ?? 0) > HELD, 'events seen')
      asked.leave()
      await until(async () => (await service.rows()).length === 1, 'the turn settled')
      await until(() => service.upstream.requests.at(-1)?.aborted === true, 'the upstream let go')
      await expectSettled(turn, {
        status: 'cancelled',
        account: 0,
        attempts: 1,
        tokens: 'estimated',
        keepsSocket: false,
      })
      expect(service.bindings.pool.get(service.members[0]!.id)?.health.errors).toBe(0)
    })
  })

const FAILED: Expected = { status: 'error', account: 0, attempts: 1, tokens: 'estimated', keepsSocket: false }
