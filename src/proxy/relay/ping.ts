/** One small model request on one account, which starts its usage windows. In no sum and no limit. */
import type { Client } from '../../auth/client-key.ts'
import type { Bindings } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'
import { toUpstreamEffort } from '../ingress/key-policy.ts'
import { BodyHold } from '../ingress/raw-body.ts'
import { admit, requireOpen } from '../turn/admit.ts'
import { attempt } from '../turn/attempts.ts'
import { begin } from '../turn/begin.ts'
import type { Flow } from '../turn/flow.ts'
import type { TurnBody } from '../turn/turn.ts'

const TIMEOUT_MS = 30_000

export interface Ping {
  accountId: string
  model: string
  /** Null: the model's default. */
  effort: string | null
  client: Client
  /** Headers of the request or job that started it. */
  headers: Headers
  /** Shown in the log. */
  requestId: string
  route: string
  signal: AbortSignal
  /** What the request says. */
  prompt?: string
  /** The account is used even while it is paused. */
  mayBePaused?: boolean
}

/** Resolves when the answer is complete, after at most 30 s. Throws the `AppError` for the client. */
export const ping = async (env: Bindings, wanted: Ping): Promise<void> => {
  requireOpen(env)
  const { accountId, client, headers, requestId, route, model, signal, mayBePaused = false } = wanted
  const turnAbort = new AbortController()
  const arrival = { env, headers, client, requestId, arrivedAt: env.clock.monotonic() }
  const turn = await admit(arrival, {
    route,
    kind: 'warmup',
    isNative: false,
    path: '/codex/responses',
    accept: 'text/event-stream',
    body: bodyFor(env, wanted),
    signal: turnAbort.signal,
    relay: {
      surface: 'ping',
      model,
      headers: 'smallest',
      plan: {
        method: 'POST',
        contentType: 'application/json',
        timeoutMs: TIMEOUT_MS,
        retry: 'before-sent',
        owner: { id: accountId, hard: true, mayBePaused },
        maxAccounts: 1,
      },
    },
  })
  try {
    await readToEnd(env, await begin({ env, turn, turnAbort, left: signal, open: attempt }, { headers: false }))
  } catch (err) {
    const error = AppError.from(err)
    throw error.code === 'continuity_owner_unavailable' ? unavailable(error) : error
  }
}

/** The same for a job, without a client. */
export const pingForJob = (
  env: Bindings,
  wanted: Pick<Ping, 'accountId' | 'model' | 'effort' | 'route' | 'prompt' | 'mayBePaused'>,
  signal: AbortSignal,
): Promise<void> =>
  ping(env, {
    ...wanted,
    client: { key: null, hasUnrecognizedKey: false, ip: null },
    headers: new Headers(),
    requestId: env.random.id('req'),
    signal,
  })

const unavailable = (cause: AppError): AppError =>
  new AppError('no_accounts', { message: 'This account is not available now.', cause })

const readToEnd = async ({ clock }: Bindings, flow: Flow): Promise<void> => {
  const cancel = clock.after(TIMEOUT_MS, () => flow.fail(new AppError('upstream_timeout')))
  try {
    while ((await flow.next()) !== null);
  } finally {
    cancel()
  }
  if (flow.end?.error) throw flow.end.error
}

/** No limit on the output: the upstream rejects `max_output_tokens`. */
const bodyFor = ({ bodies }: Bindings, { model, effort, prompt = 'warmup' }: Ping): TurnBody => {
  const json = {
    model,
    instructions: 'Answer with one word.',
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: prompt }] }],
    ...(effort !== null && { reasoning: { effort: toUpstreamEffort(effort) } }),
    stream: true,
    store: false,
  }
  return { bytes: encodeUtf8(JSON.stringify(json)), json, hold: new BodyHold(bodies) }
}
