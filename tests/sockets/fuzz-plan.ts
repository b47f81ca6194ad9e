/** Creates from a seed the frames of a client on one socket, and the failures behind it. */
import { type Fault, faults } from '../support/upstream/faults.ts'
import { type Answer, answers } from '../support/upstream/script.ts'
import { create, NATIVE, PUBLIC } from './ground.ts'

export type Step =
  /** `chain`: what the frame continues; `last` is the last response completed on this socket. */
  | { kind: 'create'; frame: Record<string, unknown>; chain: 'none' | 'last' | 'unknown'; waitFor: Wait }
  /** Not a frame of the protocol: it gets an error frame. */
  | { kind: 'bad'; data: string | Uint8Array; waitFor: Wait }
  /** Gets no answer of its own. */
  | { kind: 'notice'; type: 'response.interrupt' | 'response.processed'; waitFor: Wait }

/** What the client waits for before it continues: all expected ends, one more event, some time, or nothing. */
export type Wait = 'ends' | 'event' | 'moment' | 'nothing'

export interface Plan {
  path: string
  hasKey: boolean
  steps: Step[]
  /** The faults queued at the stand-in, by number of the account. */
  faults: { account: number; fault: Fault }[]
  /** How the client disconnects; only one that waits can tell that every turn ended once. */
  leaves: 'done' | 'terminates' | 'closes' | 'stops reading'
  /** Before this step it leaves, unless it is `done`. */
  leavesAt: number
}

export type Random = () => number

export const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)]! // below the length

export const randomUpTo = (random: Random, most: number): number => Math.floor(random() * (most + 1))

export const makePlan = (random: Random, accounts: number): Plan => {
  const path = random() < 0.75 ? NATIVE : PUBLIC
  const steps = Array.from({ length: 1 + randomUpTo(random, 8) }, () => makeStep(random)).flatMap((step) =>
    perhapsTakenBack(random, step),
  )
  const leaves = random() < 0.7 ? 'done' : pick(random, ['terminates', 'closes', 'stops reading'] as const)
  return {
    path,
    hasKey: random() < 0.8,
    steps,
    faults: Array.from({ length: randomUpTo(random, 4) }, () => ({
      account: randomUpTo(random, accounts - 1),
      fault: makeFault(random),
    })),
    leaves,
    leavesAt: leaves === 'done' ? steps.length : randomUpTo(random, steps.length),
  }
}

const makeStep = (random: Random): Step => {
  const waitFor = pick(random, ['ends', 'ends', 'ends', 'event', 'moment', 'nothing'] as const)
  const kind = random()
  if (kind < 0.12)
    return { kind: 'notice', type: random() < 0.8 ? 'response.interrupt' : 'response.processed', waitFor }
  if (kind < 0.28) return { kind: 'bad', data: makeGarbage(random), waitFor }
  const chain = pick(random, ['none', 'none', 'none', 'last', 'last', 'last', 'unknown'] as const)
  return {
    kind: 'create',
    frame: create(`text ${randomUpTo(random, 1e9)}`, pick(random, CREATES)(random)),
    chain,
    waitFor,
  }
}

/** A notice left to chance would nearly always meet a socket without a turn. */
const perhapsTakenBack = (random: Random, step: Step): Step[] => {
  if (step.kind !== 'create' || random() < 0.75) return [step]
  const meets = pick(random, ['event', 'moment', 'nothing'] as const)
  return [
    { ...step, waitFor: meets },
    { kind: 'notice', type: 'response.interrupt', waitFor: pick(random, ['ends', 'nothing'] as const) },
  ]
}

/** What differs from a plain `response.create`. Some are accepted upstream, some are rejected. */
const CREATES: readonly ((random: Random) => Record<string, unknown>)[] = [
  ...Array.from({ length: 12 }, () => () => ({})),
  ...Array.from({ length: 3 }, () => () => ({ generate: false })),
  () => ({ generate: false, input: [] }),
  () => ({ input: [] }),
  () => ({ stream: undefined, store: true }),
  () => ({ model: 'gpt-6.1-sol', client_metadata: LITE }),
  () => ({ model: 'no-such-model' }),
  () => ({ model: undefined }),
  () => ({ input: 'a string' }),
  () => ({ input: [42, null] }),
  (random) => (random() < 0.2 ? { client_metadata: { 'x-codex-lb-required-capability': 'trusted_cyber' } } : {}),
  () => ({ client_metadata: { 'x-codex-lb-required-capability': 'unheard-of' } }),
  (random) => ({ prompt_cache_key: `conversation-${randomUpTo(random, 20)}` }),
  (random) => ({ instructions: 'x'.repeat(randomUpTo(random, 300_000)) }),
  (random) => ({ input: [reasoning(randomUpTo(random, 9)), USER] }),
  () => ({ input: [USER, { type: 'compaction_trigger' }] }),
  () => ({ input: [{ type: 'function_call_output', call_id: 'call_unknown', output: 'nothing' }] }),
  (random) => ({ input: [USER], metadata: nested(1 + randomUpTo(random, 3000)) }),
  () => ({ temperature: 0.5, max_output_tokens: 5 }),
]

/** Some responses end immediately, some take long enough to be interrupted, and some are large. */
export const makeAnswer = (random: Random): Answer | null => {
  if (random() < 0.4) return null // the stand-in's own
  const isSlow = random() < 0.3
  const deltas = isSlow ? 5 + randomUpTo(random, 20) : randomUpTo(random, 300)
  return answers.bulk(
    deltas,
    1 + randomUpTo(random, 400),
    isSlow ? { dripMs: 1 } : { perChunk: 1 + randomUpTo(random, 9) },
  )
}

const LITE = { ws_request_header_x_openai_internal_codex_responses_lite: 'true' }
const USER = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hello' }] }
const reasoning = (n: number) => ({
  type: 'reasoning',
  id: `rs_${n}`,
  summary: [],
  encrypted_content: `enc.nobody.${n}`,
})

const nested = (levels: number): unknown => {
  let value: unknown = 'deep'
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

const makeGarbage = (random: Random): string | Uint8Array =>
  pick<(random: Random) => string | Uint8Array>(random, [
    () => '',
    () => '{',
    () => 'null',
    () => '[]',
    () => '"response.create"',
    () => '{"type":"response.create"',
    () => '{"type":"response.created"}',
    () => '{"type":42}',
    () => '{"type":"response.create","generate":"no"}',
    () => '{"type":"response.create","previous_response_id":["resp_1"]}',
    () => '\u0000\u2028\ud83d',
    () => `{"type":"${'x'.repeat(randomUpTo(random, 200_000))}"}`,
    () => '['.repeat(randomUpTo(random, 100_000)),
    () => new Uint8Array(randomUpTo(random, 5000)),
    () => new TextEncoder().encode('{"type":"response.create"}'),
  ])(random)

/** Hangs are rare, because each costs a second. */
const makeFault = (random: Random): Fault => {
  if (random() < 0.01) return { silence: { afterEvents: randomUpTo(random, 8) } }
  const afterEvents = randomUpTo(random, 8)
  return pick<Fault>(random, [
    { close: { code: pick(random, [1000, 1001, 1006, 1009, 1011, 1012, 4000]), afterEvents } },
    { terminate: { afterEvents } },
    { binaryFrame: { afterEvents } },
    { dropAfter: { events: afterEvents, how: random() < 0.5 ? 'fin' : 'reset' } },
    { closeIdle: { code: 1000 + randomUpTo(random, 3) } },
    { omitTerminal: true },
    { reset: true },
    { malformedChunk: { afterEvents } },
    { failAfterCreated: { code: 'server_error', message: 'The model failed.', afterEvents } },
    { failAfterCreated: { code: 'usage_limit_reached', message: 'The usage limit has been reached' } },
    { errorEvent: { code: 'server_error', message: 'The model failed.', afterEvents } },
    { incomplete: { reason: 'max_output_tokens' } },
    { rateLimitsEvent: true },
    { dripMs: 1 },
    { delayHeadersMs: 20 },
    { manyEvents: { count: 2000, bytes: 200, perChunk: 50 } },
    { manyEvents: { count: 20, bytes: 50_000 } },
    faults.usageLimit({ resetsAt: Date.now() + 3_600_000 }),
    faults.rateLimited(1),
    faults.serverError(),
    faults.badGatewayHtml(),
    faults.unauthorized(),
    faults.invalidEncryptedContent(),
    { on: 'handshake', reset: true },
    { on: 'handshake', delayHeadersMs: 20 },
    { on: 'handshake', ...pick(random, HANDSHAKES) },
  ])
}

const HANDSHAKES: readonly Fault[] = [
  { status: 426, body: 'Upgrade Required' },
  { status: 404, body: { detail: 'Not Found' } },
  faults.forbiddenHtml(),
  faults.unauthorized(),
  faults.rateLimited(1),
  faults.overloaded(),
  faults.badGatewayHtml(),
]
