/** Turns an authenticated request with its body into a `Turn`: key policy, affinity, limits. Throws before anything is spent. */
import type { Context } from 'hono'
import type { AppEnv } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { costMicros } from '../model/pricing.ts'
import { estimateTokens, reserve } from '../model/reservations.ts'
import { forwardable, readTurnState } from '../upstream/headers.ts'
import { conversationHash } from './affinity.ts'
import { marksOf } from './continuity.ts'
import { objectOf, textOf } from './formats/responses-event.ts'
import { elapsedMs, newTurnLog, type Turn, type TurnBody, type TurnKind } from './turn.ts'

export interface Admission {
  route: string
  kind: TurnKind
  /** The native client gives up politely at other statuses than SDKs do (client protocol §10). */
  isNative: boolean
  path: string
  accept: string
  passesDeltas?: boolean
  body: TurnBody
  signal: AbortSignal
}

/** Throws `draining`, `busy`, `model_not_allowed` or `model_not_found`, `rate_limit_exceeded`, `invalid_request_error`. */
export const admit = (c: Context<AppEnv>, admission: Admission): Turn => {
  const { env } = c
  const { body, isNative } = admission
  const { client, requestId, arrivedAt } = c.var
  const settings = env.settings.current()
  const headers = c.req.raw.headers
  const model = modelOf(body)
  const reasoningEffort = textOf(objectOf(body.json.reasoning).effort) || null
  demandAllowed(client.key, { model, reasoningEffort, isNative })
  const serviceTier = textOf(body.json.service_tier) || null
  const tokens = estimateTokens(body.bytes.length)
  const cost = costMicros({ ...tokens, cachedInputTokens: 0 }, model, serviceTier)
  const now = env.clock.now()
  const forwarded = forwardable(headers)
  forwarded['x-request-id'] = requestId
  const turnState = headers.get('x-codex-turn-state')
  const turn: Turn = {
    id: env.random.orderedId('trn', now),
    requestId,
    route: admission.route,
    kind: admission.kind,
    client,
    userAgent: headers.get('user-agent'),
    model,
    reasoningEffort,
    serviceTier,
    path: admission.path,
    accept: admission.accept,
    passesDeltas: admission.passesDeltas ?? false,
    headers: forwarded,
    turnStateOwner: turnState === null ? null : (readTurnState(turnState)?.owner ?? null),
    conversation: conversationHash(headers, body.json.prompt_cache_key, client.key?.id ?? null),
    ...marksOf(body.json.input),
    restricted: false,
    settings,
    reservation: reserve(client.key ?? NO_LIMITS, { ...tokens, costMicros: cost, model }, now),
    estimate: { inputTokens: tokens.inputTokens },
    signal: admission.signal,
    startedAt: now,
    arrivedAt,
    log: newTurnLog(),
    body,
  }
  turn.log.admitMs = elapsedMs(arrivedAt, env.clock.monotonic())
  return turn
}

const NO_LIMITS = { limits: [] }

const modelOf = ({ json }: TurnBody): string => {
  const { model } = json
  if (typeof model === 'string' && model !== '' && model.length <= 200) return model
  throw new AppError('invalid_request_error', { message: 'model must be a non-empty string.', param: 'model' })
}

interface Asked {
  model: string
  reasoningEffort: string | null
  isNative: boolean
}

const demandAllowed = (key: { allowedModels: ReadonlySet<string> | null; efforts: Efforts } | null, asked: Asked) => {
  if (!key) return
  const { model, reasoningEffort, isNative } = asked
  if (key.allowedModels && !key.allowedModels.has(model)) {
    const message = `This API key does not have access to model '${model}'.`
    throw new AppError(isNative ? 'model_not_found' : 'model_not_allowed', { message, param: 'model' })
  }
  const allowed = key.efforts.enforced ? [key.efforts.enforced] : key.efforts.allowed && [...key.efforts.allowed]
  if (allowed && reasoningEffort !== null && !allowed.includes(reasoningEffort))
    throw new AppError('invalid_request_error', {
      message: `This API key allows the reasoning effort ${allowed.join(', ')} only.`,
      param: 'reasoning.effort',
      ...(isNative ? {} : { status: 403 }),
    })
}

interface Efforts {
  enforced: string | null
  allowed: ReadonlySet<string> | null
}
