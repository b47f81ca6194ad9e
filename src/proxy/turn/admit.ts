/** Turns an authenticated request into a `Turn`: key policy, affinity, limits. Throws before any limit is charged. */
import type { Bindings } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { getObject, getText } from '../../lib/json.ts'
import { costMicros } from '../../model/catalog/pricing.ts'
import type { KeyLeases } from '../../model/keys/key-leases.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'
import { estimateTokens, type Reservation } from '../../model/keys/reservations.ts'
import { requestUnits } from '../../model/log/request-units.ts'
import { agentOnly, forwardable, liveHeaders, readTurnState, sidebandHeaders } from '../../upstream/headers.ts'
import type { UpstreamSession } from '../exchange/upstream-session.ts'
import { endsInTrigger } from '../formats/compaction-trigger.ts'
import { isSameEffort, tierName, withoutFastTier } from '../ingress/key-policy.ts'
import { conversationHash, threadHash } from '../pool/affinity.ts'
import { getOpening } from '../pool/conversation-fingerprint.ts'
import type { Surface } from '../pool/selection-needs.ts'
import type { RelayPlan } from '../relay/plan.ts'
import { rejectTurn } from './begin.ts'
import { captureOf } from './capture.ts'
import { type FilesInUse, getFileIds, getMarks, getOwner, useFiles } from './continuity.ts'
import {
  type Arrival,
  elapsedMs,
  newTurnLog,
  type Phase,
  type Transport,
  type Turn,
  type TurnBody,
  type TurnKind,
} from './turn.ts'

export interface Admission {
  route: string
  /** With `normal`, the body decides (see `getKind`). */
  kind: TurnKind
  /** The native client gives up on other statuses than SDKs do (Codex CLI 0.169). */
  isNative: boolean
  path: string
  accept: string
  passesDeltas?: boolean
  /** `http` when absent. */
  transport?: Transport
  session?: UpstreamSession
  /** `previous_response_id` of the frame. */
  chain?: string | null
  restricted?: boolean
  /** For requests that are relayed; a model turn when absent. */
  relay?: Relayed
  /** Whether a model source serves it. It then uses no part of the pool. */
  isBySource?: true
  body: TurnBody
  signal: AbortSignal
}

/** What a relayed request is admitted with. */
export interface Relayed {
  surface: Exclude<Surface, 'turn'>
  plan: RelayPlan
  /** The name that the key's policy and limits are checked against; null: none, and the key's allowlist does not apply. */
  model: string | null
  /** The key's allowlist does not apply although there is a name. */
  ignoresAllowlist?: boolean
  /** Which of the client's headers leave: those of a turn, the user agent alone, or those of a live call or its WebSocket. */
  headers: 'client' | 'smallest' | 'live' | 'sideband'
  /** An earlier request was counted for it, so it counts against no limit. */
  isCountedBefore?: true
  /** Names the conversation in place of the client's headers. */
  thread?: string | null
}

/** Throws `draining` or `busy`. */
export const requireOpen = ({ lifecycle, turns }: Pick<Bindings, 'lifecycle' | 'turns'>): void => {
  if (lifecycle.draining) throw new AppError('draining', { retryAfterSeconds: 5 })
  if (turns.size >= lifecycle.maxTurns) throw new AppError('busy', { retryAfterSeconds: 2 })
}

/**
 * Throws `model_not_allowed`, `model_not_found`, `rate_limit_exceeded`, `share_used_up` or `invalid_request_error`. Rejected turns are
 * logged too.
 */
export const admit = async (arrival: Arrival, admission: Admission): Promise<Turn> => {
  const { isNative, kind } = admission
  const { key } = arrival.client
  const asked = orReject(arrival, admission, 'request', () => requestedOptions(arrival, admission))
  if (key && !admission.relay?.ignoresAllowlist)
    orReject(arrival, admission, 'auth', () =>
      requireAllowed(withoutFastTier(key, arrival.env.settings.current()), asked, isNative),
    )
  let turn: Turn
  const files = admission.relay ? null : orReject(arrival, admission, 'select', () => getFiles(arrival, admission))
  const isCounted = kind !== 'prewarm' && kind !== 'warmup' && !admission.relay?.isCountedBefore
  try {
    const held = key && isCounted ? reserve(arrival.env.keyLeases, key, asked) : NOTHING_RESERVED
    const reservation = held instanceof Promise ? await held : held
    turn = newTurn(arrival, admission, { ...asked, reservation, files })
  } catch (err) {
    return rejectAdmission(arrival, admission, 'auth', isNative ? asUsageLimit(err) : err)
  }
  if (usesShare(admission, turn)) takeFromShare(arrival.env, turn)
  return turn
}

/** Whether the turn counts toward a share. Prewarms have no cost, but start a conversation. */
const usesShare = ({ isBySource }: Admission, { kind }: Turn): boolean => !isBySource && SHARED_KINDS.has(kind)

const SHARED_KINDS: ReadonlySet<TurnKind> = new Set(['normal', 'compaction', 'prewarm', 'image', 'audio'])

/** Throws `share_used_up`; the turn is then logged as rejected. */
const takeFromShare = (env: Bindings, turn: Turn): void => {
  const { shares, proxyDeps } = env
  if (!shares.isOn) return
  const owner = turn.client.key?.ownerUserId ?? null
  const { id, estimate, kind } = turn
  const units = kind === 'prewarm' ? 0 : requestUnits({ ...NO_USE, ...estimate })
  const isNew = getOwner(proxyDeps, turn) === null && !turn.hasCiphertext && turn.opening === null
  try {
    turn.log.borrowed = shares.begin(owner, { id, units, isNew })
  } catch (err) {
    const error = AppError.from(turn.isNative ? asUsageLimit(err) : err)
    rejectTurn(env, turn, error)
    throw error
  }
}

const NO_USE = { cachedInputTokens: 0, outputTokens: 0, costMicros: null }

const getFiles = ({ env, client }: Arrival, { body }: Admission): FilesInUse | null => {
  const fileIds = getFileIds(body.json.input)
  const deps = { affinity: env.affinity, now: env.clock.now(), keyId: client.key?.id ?? null }
  return fileIds.length === 0 ? null : useFiles(deps, fileIds)
}

/**
 * Runs one part of admission; if it throws, the turn is logged as failed in `phase`. Exception:
 * `previous_response_not_found` on a socket, because the client immediately resends the whole conversation and that
 * turn is logged. Not logged either: a lack of memory, where logging would add load at the worst time.
 */
export const orReject = <T>(arrival: Arrival, admission: Admission, phase: Phase, work: () => T): T => {
  try {
    return work()
  } catch (err) {
    return rejectAdmission(arrival, admission, phase, err)
  }
}

const rejectAdmission = (arrival: Arrival, admission: Admission, phase: Phase, err: unknown): never => {
  const error = AppError.from(err)
  if (error.code === 'previous_response_not_found' && admission.transport === 'websocket') throw err
  if (error.extra.rejection) throw err // the rejected client is logged instead
  if (error.code === 'busy') throw err
  const asked = getReadable(arrival, admission)
  const turn = newTurn(arrival, admission, { ...asked, reservation: NOTHING_RESERVED, files: null })
  turn.log.phase = phase
  rejectTurn(arrival.env, turn, error)
  throw err
}

const requestedOptions = (arrival: Arrival, admission: Admission): Asked =>
  admission.relay ? getRelayNeeds(arrival, admission.relay) : getTurnNeeds(arrival, admission)

/** What a relayed request uses is not known before it is answered. */
const getRelayNeeds = ({ env }: Arrival, { model }: Relayed): Asked => ({
  model,
  reasoningEffort: null,
  serviceTier: null,
  tokens: { inputTokens: 0, outputTokens: 0 },
  now: env.clock.now(),
})

const getTurnNeeds = (arrival: Arrival, { body }: Admission): Asked => ({
  model: requireModelName(body.json.model),
  reasoningEffort: getName(getObject(body.json.reasoning).effort, 'reasoning.effort'),
  serviceTier: getName(body.json.service_tier, 'service_tier'),
  tokens: estimateTokens(body.bytes.length),
  now: arrival.env.clock.now(),
})

/** What the log can store of a body that may not be a valid request. */
const getReadable = (arrival: Arrival, { body, relay }: Admission): Asked => {
  if (relay) return getRelayNeeds(arrival, relay)
  const { model, reasoning, service_tier } = body.json
  const short = (value: unknown, most: number) => {
    const text = getText(value)
    return text.length <= most ? text || null : null
  }
  return {
    model: short(model, MAX_MODEL_CHARS),
    reasoningEffort: short(getObject(reasoning).effort, MAX_NAME_CHARS),
    serviceTier: short(service_tier, MAX_NAME_CHARS),
    tokens: estimateTokens(body.bytes.length),
    now: arrival.env.clock.now(),
  }
}

interface Asked {
  model: string | null
  reasoningEffort: string | null
  serviceTier: string | null
  tokens: ReturnType<typeof estimateTokens>
  /** ms since epoch. */
  now: number
}

const NOTHING_RESERVED: Reservation = Object.freeze({ settle: () => [] })

const reserve = (
  leases: KeyLeases,
  key: KeyPolicy,
  { model, serviceTier, tokens }: Asked,
): Reservation | Promise<Reservation> => {
  const cost = model === null ? 0 : costMicros({ ...tokens, cachedInputTokens: 0 }, model, serviceTier)
  return leases.reserve(key, { ...tokens, costMicros: cost, model })
}

/** The native client shows an error of this type; for others it silently waits out `Retry-After` (Codex CLI 0.169). */
const asUsageLimit = (err: unknown): unknown =>
  err instanceof AppError && (err.code === 'rate_limit_exceeded' || err.code === 'share_used_up') && err.extra.envelope
    ? new AppError(err.code, { ...err.extra, type: 'usage_limit_reached' })
    : err

interface Granted extends Asked {
  reservation: Reservation
  files: FilesInUse | null
}

const SENT_HEADERS: Record<Relayed['headers'], (inbound: Headers) => Record<string, string>> = {
  client: forwardable,
  smallest: agentOnly,
  live: liveHeaders,
  sideband: sidebandHeaders,
}

const newTurn = (arrival: Arrival, admission: Admission, granted: Granted): Turn => {
  const { env, client, requestId, arrivedAt, headers } = arrival
  const { body, relay } = admission
  const { model, reasoningEffort, serviceTier, tokens, now, reservation, files } = granted
  const forwarded = SENT_HEADERS[relay?.headers ?? 'client'](headers)
  if (relay?.headers !== 'smallest' && relay?.headers !== 'sideband') forwarded['x-request-id'] = requestId
  if (client.key?.enforcedModel) delete forwarded['x-codex-routing-hint'] // hints at the model the client requested
  const marks = getMarks(body.json.input)
  const getHash = (name: unknown) => conversationHash(headers, name, client.key?.id ?? null)
  const named = relay?.thread ? threadHash(relay.thread, client.key?.id ?? null) : getHash(body.json.prompt_cache_key)
  const begun = named === null && !relay && !admission.isNative ? getOpening(body.json) : null
  const beginning = begun && getHash(begun.name)
  // Ciphertext identifies its account better than an opening, which several conversations may share.
  const opening = begun?.isAnswered && !marks.hasCiphertext ? beginning : null
  const isAlone = opening !== null && env.affinity.openings.begin(opening)
  const conversation = isAlone ? opening : named
  // The upstream caches prompts per session id; the native client sends its own.
  const cacheName = conversation ?? (marks.hasCiphertext && begun?.isAnswered ? beginning : null)
  if (!admission.isNative && !relay && cacheName !== null) forwarded['session-id'] ??= cacheName
  const turnState = headers.get('x-codex-turn-state')
  const id = env.random.orderedId('trn', now)
  const turn: Turn = {
    id,
    requestId,
    route: admission.route,
    isNative: admission.isNative,
    kind: getKind(admission),
    surface: relay?.surface ?? 'turn',
    relay: relay?.plan ?? null,
    transport: admission.transport ?? 'http',
    session: admission.session ?? null,
    chain: admission.chain ?? null,
    client,
    userAgent: headers.get('user-agent')?.slice(0, MAX_USER_AGENT_CHARS) ?? null,
    model,
    reasoningEffort,
    serviceTier,
    path: admission.path,
    accept: admission.accept,
    passesDeltas: admission.passesDeltas ?? false,
    headers: forwarded,
    turnStateOwner: turnState === null ? null : (readTurnState(turnState)?.owner ?? null),
    conversation,
    opening,
    getFirst: begun?.isAnswered || marks.hasCiphertext ? null : beginning,
    ...marks,
    fileOwner: files?.accountId ?? null,
    restricted: admission.restricted ?? false,
    settings: env.settings.current(),
    reservation,
    estimate: { inputTokens: tokens.inputTokens },
    signal: admission.signal,
    startedAt: now,
    arrivedAt,
    log: newTurnLog(),
    body,
    recording: null,
    capture: env.captures.isOn ? captureOf(arrival, admission, { id, model }) : null,
  }
  if (files) turn.log.owned.push(...files.rows)
  turn.log.admitMs = elapsedMs(arrivedAt, env.clock.monotonic())
  return turn
}

/** Any Responses request may ask for a compaction in its input; newer native clients always do (Codex CLI 0.169). */
const getKind = ({ kind, body }: Admission): TurnKind =>
  kind === 'normal' && endsInTrigger(body.json.input) ? 'compaction' : kind

/** Client-supplied names are stored with every turn, so their length is limited. */
const MAX_NAME_CHARS = 64
const MAX_MODEL_CHARS = 200
const MAX_USER_AGENT_CHARS = 512

const getName = (value: unknown, param: string): string | null => {
  const name = getText(value)
  if (name.length <= MAX_NAME_CHARS) return name || null
  throw new AppError('invalid_request_error', {
    message: `${param} is longer than ${MAX_NAME_CHARS} characters.`,
    param,
  })
}

/** Throws `invalid_request_error`. */
export const requireModelName = (model: unknown): string => {
  if (typeof model === 'string' && model !== '' && model.length <= MAX_MODEL_CHARS) return model
  throw new AppError('invalid_request_error', {
    message: `model must be a string of 1 to ${MAX_MODEL_CHARS} characters.`,
    param: 'model',
  })
}

/** Throws `model_not_found` on native routes, otherwise `model_not_allowed`. */
export const requireAllowedModel = (key: KeyPolicy, model: string | null, isNative: boolean): void => {
  if (!key.allowedModels || model === null || key.allowedModels.has(model)) return
  const message = `This API key cannot use the model '${model}'.`
  const rejection = { reason: 'model_not_allowed', keyId: key.id, model } as const
  throw new AppError(isNative ? 'model_not_found' : 'model_not_allowed', { message, param: 'model', rejection })
}

const requireAllowed = (key: KeyPolicy, { model, reasoningEffort, serviceTier }: Asked, isNative: boolean): void => {
  requireAllowedModel(key, model, isNative)
  const { enforced, allowed } = key.efforts
  const efforts = enforced ? [enforced] : allowed && [...allowed]
  if (efforts && reasoningEffort !== null && !efforts.some((effort) => isSameEffort(effort, reasoningEffort)))
    throw new AppError('invalid_request_error', {
      message: `This API key only allows these reasoning efforts: ${efforts.join(', ')}.`,
      param: 'reasoning.effort',
      ...(isNative ? {} : { status: 403 }),
    })
  if (key.tier !== null && serviceTier !== null && tierName(serviceTier) !== tierName(key.tier))
    throw new AppError('invalid_request_error', {
      message: `This API key only allows the service tier ${key.tier}.`,
      param: 'service_tier',
    })
}
