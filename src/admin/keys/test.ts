/** `POST /api/api-keys/:id/test`: sends one small request with a key through a route of its clients, and reports the result. */
import { z } from 'zod'
import { commit } from '../../../db/commit.ts'
import { type KeyTest, KeyTestResult } from '../../../views/keys/test.tsx'
import { actor } from '../../auth/principal.ts'
import { canChangeOwnKeys, requireKeyScope } from '../../auth/view-scope.ts'
import type { Bindings, Ctx } from '../../boot/bindings.ts'
import { body } from '../../http/body.ts'
import { writesKeys } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { reply } from '../../http/reply.tsx'
import { getObject, getText, isObject, type JsonObject } from '../../lib/json.ts'
import { SseScanner } from '../../lib/sse.ts'
import { eventJson } from '../../lib/sse-payload.ts'
import { append } from '../../model/audit/audit.ts'
import { getKey, type StoredKey } from '../../model/keys/api-keys.ts'
import type { KeyPolicy, KeyRing } from '../../model/keys/key-ring.ts'
import { keyTurn } from '../../model/keys/key-turn.ts'
import type { SettingsCache } from '../../settings/cache.ts'
import { accountChoices, listedModels } from '../choices.ts'

/** The whole app as a function, so that the test passes every gate a client does. */
type Serve = (request: Request, env: Bindings) => Response | Promise<Response>

const DIALECTS = ['responses', 'messages'] as const
type Dialect = (typeof DIALECTS)[number]

const TestInput = z.strictObject({
  model: z.string().trim().min(1).max(200).optional().describe('Absent: the first model the key can use.'),
  dialect: z
    .enum(DIALECTS)
    .default('responses')
    .describe('`messages` sends the request as Claude Code does, to `/v1/messages`. Absent: `responses`.'),
})

const DEADLINE_MS = 45_000
/** Idle limit of the connection during the test, longer than the deadline. */
const PATIENCE_SECONDS = 60
const SHOWN_CHARS = 200

/** `serve` is the app containing this route. Throws `not_found`. A failed request is a result, not an error. */
export const testApiKey = (serve: Serve) =>
  createHandlers(writesKeys({ audit: 'api_key_tested' }), body(TestInput), async (c) => {
    const who = actor(c)
    const row = await commit(c.env.db, async (tx) => {
      const key = await getKey(tx, getPathId(c), requireKeyScope(c.var.principal))
      await append(tx, who, 'api_key_tested', { target: key.id, details: { name: key.name } })
      return key
    })
    c.env.server?.timeout(c.req.raw, PATIENCE_SECONDS)
    return reply(c, await testKey(c, serve, row, c.req.valid('json')), KeyTestResult)
  })

const testKey = async (
  c: Ctx,
  serve: Serve,
  row: StoredKey,
  { model: asked, dialect }: z.output<typeof TestInput>,
): Promise<KeyTest> => {
  const { clock, random, ledger, db, settings, keys } = c.env
  const policy = keys.byHash(row.keyHash)
  const model = asked ?? row.enforcedModel ?? listedModels(c, policy)[0]?.id ?? null
  const requestId = random.id('test')
  const isKeyRequired = settings.current().apiKeyAuthEnabled
  if (model === null) return { ...NOTHING, keyId: row.id, requestId, isKeyRequired }
  const startedAt = clock.now()
  const heard = await send(c, serve, { policy, model, requestId, dialect })
  await ledger.flush()
  const turn = await keyTurn(db, row.id, requestId, startedAt)
  return {
    ...heard,
    isOk: heard.error === null,
    keyId: row.id,
    requestId,
    isKeyRequired,
    model,
    logId: turn?.id ?? null,
    account: canChangeOwnKeys(c.var.principal) ? null : (getAccountName(c, turn?.accountId) ?? null),
    attempts: turn?.attempts ?? 0,
    inputTokens: turn?.inputTokens ?? null,
    outputTokens: turn?.outputTokens ?? null,
    costUsd: turn?.costMicros == null ? null : turn.costMicros / 1e6,
  }
}

const getAccountName = (c: Ctx, id: string | null | undefined) =>
  accountChoices(c).find((choice) => choice.id === id)?.name

const NOTHING: Omit<KeyTest, 'keyId' | 'requestId' | 'isKeyRequired'> = {
  isOk: false,
  logId: null,
  model: null,
  account: null,
  attempts: 0,
  firstTokenMs: null,
  totalMs: 0,
  inputTokens: null,
  outputTokens: null,
  costUsd: null,
  text: '',
  error: { status: 503, code: 'no_accounts', message: 'No model is known yet: add an account first.' },
}

type ReadAnswer = Pick<KeyTest, 'firstTokenMs' | 'totalMs' | 'text' | 'error'>

interface Sending {
  policy: KeyPolicy | null
  model: string
  requestId: string
  dialect: Dialect
}

/** Sends the request and reads to the end or the deadline. */
const send = async (c: Ctx, serve: Serve, sending: Sending): Promise<ReadAnswer> => {
  const { clock } = c.env
  const controller = new AbortController()
  const startedAt = clock.monotonic()
  const cancel = clock.after(DEADLINE_MS, () => controller.abort())
  try {
    const { request, env } = turnRequest(c, sending, controller.signal)
    const response = await serve(request, env)
    const heard = response.ok
      ? await listen(response, { signal: controller.signal, elapsedMs: () => clock.monotonic() - startedAt })
      : { firstTokenMs: null, text: '', error: await getRefusal(response) }
    const error = controller.signal.aborted ? TOO_LATE : heard.error
    return { ...heard, error, totalMs: clock.monotonic() - startedAt }
  } finally {
    cancel()
  }
}

const TOO_LATE = { status: 504, code: 'upstream_timeout', message: `No answer within ${DEADLINE_MS / 1000} seconds.` }

/** Headers about where the user's browser is, so that the test is judged like its clients. */
const PASSED_ON = ['host', 'forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

/**
 * Only the owner knows the key, so this request is admitted with a one-time ticket instead. The key's limits apply even
 * where keys are optional.
 */
const turnRequest = (c: Ctx, { policy, model, requestId, dialect }: Sending, signal: AbortSignal) => {
  const { server: _, ...bindings } = c.env
  const ticket = c.env.random.token(24)
  const settings = { ...c.env.settings.current(), apiKeyAuthEnabled: true }
  const env: Bindings = {
    ...bindings,
    peer: c.var.peer ?? undefined,
    // as: the gate uses nothing else
    keys: { find: (key: string) => (key === ticket ? policy : null) } as unknown as KeyRing,
    settings: { current: () => settings } as unknown as SettingsCache, // as: turns only read it
  }
  const headers = new Headers({
    authorization: `Bearer ${ticket}`,
    'content-type': 'application/json',
    'user-agent': 'sluice-key-test',
    'x-request-id': requestId,
  })
  for (const name of PASSED_ON) {
    const value = c.req.header(name)
    if (value !== undefined) headers.set(name, value)
  }
  const { path, json } = REQUESTS[dialect](model)
  const url = new URL(path, c.req.url)
  return { env, request: new Request(url, { method: 'POST', headers, body: JSON.stringify(json), signal }) }
}

const PROMPT = 'Reply with the single word: ok'

const REQUESTS: Record<Dialect, (model: string) => { path: string; json: JsonObject }> = {
  responses: (model) => ({ path: '/v1/responses', json: { model, input: PROMPT, stream: true } }),
  messages: (model) => ({
    path: '/v1/messages',
    json: { model, max_tokens: 1024, messages: [{ role: 'user', content: PROMPT }], stream: true },
  }),
}

interface Listening {
  signal: AbortSignal
  elapsedMs: () => number
}

/** A stream does not end when its client disconnects, so the reader is cancelled. */
const listen = async (response: Response, { signal, elapsedMs }: Listening): Promise<Omit<ReadAnswer, 'totalMs'>> => {
  const reader = response.body?.getReader()
  signal.addEventListener('abort', () => void reader?.cancel(), { once: true })
  const scanner = new SseScanner()
  const heard: Omit<ReadAnswer, 'totalMs'> = { firstTokenMs: null, text: '', error: INCOMPLETE }
  for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader?.read()) {
    for (const { bytes, type } of scanner.push(chunk.value)) {
      if (type !== null && DELTAS.has(type)) {
        heard.firstTokenMs ??= elapsedMs()
        heard.text = (heard.text + getDelta(eventJson(bytes))).slice(0, SHOWN_CHARS)
      } else if (type !== null && ENDS.has(type)) heard.error = null
      else if (type === 'response.failed' || type === 'error') heard.error = getFailure(eventJson(bytes))
    }
  }
  return heard
}

const DELTAS: ReadonlySet<string> = new Set(['response.output_text.delta', 'content_block_delta'])
const ENDS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'message_stop'])

/** Its text, in either dialect. */
const getDelta = (event: unknown): string => {
  const { delta } = getObject(event)
  return getText(delta) || getText(getObject(delta).text)
}

const INCOMPLETE = { status: 502, code: 'stream_incomplete', message: 'The answer ended before it was complete.' }

const getRefusal = async (response: Response): Promise<KeyTest['error']> => ({
  ...getFailure(await response.json().catch(() => null)),
  status: response.status,
})

/** An error envelope, a `response.failed` event or an `error` event. */
const getFailure = (said: unknown): NonNullable<KeyTest['error']> => {
  const event = getObject(said)
  const error = [event.error, getObject(event.response).error].find(isObject) ?? event
  const code = getText(error.code) || getText(getObject(error.details).error_code) || 'upstream_error'
  return { status: 502, code, message: getText(error.message) }
}
