/** The steps that all model routes share, in order: gates, read and check the body, build and admit the turn. */
import { requireKey } from '../../auth/client-key.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { type AccessRule, clientKey, type Gate, type KeyNeed, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { IDLE_SECONDS } from '../../lib/idle-limit.ts'
import type { JsonObject } from '../../lib/json.ts'
import { type Capability, type Choice, choicesFor } from '../../model/sources/sources.ts'
import type { Answered } from '../downstream/answer.ts'
import {
  BodyHold,
  demandsCapability,
  mentionsCapability,
  OTHER_BODY_BYTES,
  RESPONSES_BODY_BYTES,
  readBody,
  readBytes,
  requireSingle,
} from '../ingress/raw-body.ts'
import { type Admission, admit, orReject, requireOpen } from '../turn/admit.ts'
import { type Arrival, elapsedMs, type TurnBody } from '../turn/turn.ts'

type Serve = (c: Ctx) => Promise<Response>

/** A route that serves turns: the client's key first, then what the client may not request here. */
export const turnRoute = (serve: Serve, { key = 'optional', gate = clientKey }: TurnRouteOptions = {}) =>
  createHandlers(gate(key), restricted('refuse'), longLived(serve))

interface TurnRouteOptions {
  key?: KeyNeed
  gate?: (need: KeyNeed) => Gate<AccessRule>
}

/**
 * Rejects when there is no room for a turn. Whatever a step of the route throws ends here: the memory of the body is
 * released, and the answer gets the client's limits. Restores the connection's idle limit after every answer except a stream,
 * which has a longer one. Without it an unused connection would stay open forever (Bun 1.4.5).
 */
const longLived =
  (serve: Serve): Serve =>
  async (c) => {
    requireOpen(c.env)
    let isStream = false
    try {
      const answer = await serve(c)
      isStream = c.get('isRelayed') || (answer.headers.get('content-type')?.startsWith('text/event-stream') ?? false)
      return answer
    } catch (err) {
      c.get('bodyHold')?.release()
      const limits = c.env.clientLimits.headersFor(c.get('client').key, null)
      for (const [name, value] of Object.entries(limits)) c.header(name, value)
      throw err
    } finally {
      if (!isStream) c.env.server?.timeout(c.req.raw, IDLE_SECONDS)
    }
  }

/** Properties shared by all turns of a route. */
export type TurnKindOf = Pick<Admission, 'kind' | 'isNative' | 'path' | 'accept' | 'relay' | 'transport'> & {
  /** In the log; the path of the request when absent. */
  route?: string
}

/**
 * Reads the body and lifts the connection's idle limit, because a model may think for minutes. Checks the key again
 * after a slow upload.
 */
export const readTurnBody = async (c: Ctx, turns: TurnKindOf, maxBytes = RESPONSES_BODY_BYTES): Promise<TurnBody> => {
  const body = await received(c, turns, readBody(c.req.raw, getLimits(c, turns, maxBytes)))
  prepared(c, body, turns, () => requireSingle(body.bytes, body.json))
  requireOrdinary(body.json, c)
  c.env.server?.timeout(c.req.raw, 0)
  return body
}

/** The same for a body that is relayed as bytes; `json` is empty. */
export const readRelayBody = async (c: Ctx, turns: TurnKindOf, maxBytes = OTHER_BODY_BYTES): Promise<TurnBody> => {
  const body = await received(c, turns, readBytes(c.req.raw, getLimits(c, turns, maxBytes)))
  c.env.server?.timeout(c.req.raw, 0)
  return { ...body, json: {} }
}

const getLimits = ({ env }: Ctx, { isNative }: TurnKindOf, maxBytes: number) =>
  ({ env, maxBytes, tooLargeStatus: isNative ? 400 : 413 }) as const

const received = async <Body extends Pick<TurnBody, 'bytes' | 'hold'>>(
  c: Ctx,
  turns: TurnKindOf,
  reading: Promise<Body>,
): Promise<Body> => {
  const body = await reading.catch((err: unknown) => rejectUnread(c, turns, err))
  c.set('bodyHold', body.hold)
  if (c.env.captures.isOn) body.hold.received = body.bytes
  await checkKeyAgain(c)
  return body
}

const checkKeyAgain = async (c: Ctx): Promise<void> => {
  if (elapsedMs(c.get('arrivedAt'), c.env.clock.monotonic()) > SLOW_BODY_MS) await c.get('passAgain')(c)
}

/** Below this, checking the key once is enough; a second check would cost 2 % of a turn. */
const SLOW_BODY_MS = 1000

/**
 * Not logged: clients that disconnected, and failures on our side such as a lack of room, where logging would add load
 * at the worst time.
 */
const rejectUnread = (c: Ctx, turns: TurnKindOf, err: unknown): never => {
  if (c.req.raw.signal.aborted || AppError.from(err).status >= 500) throw err
  const nothing = { bytes: new Uint8Array(), json: {}, hold: new BodyHold(c.env.bodies) }
  return prepared(c, nothing, turns, () => {
    throw err
  })
}

/** The model sources that can serve this JSON request; empty: the pool serves it. */
export const getChoices = (
  { env, var: { client } }: Ctx,
  { json }: Pick<TurnBody, 'json'>,
  capability: Capability,
  isStreamed = json.stream === true,
): Choice[] =>
  choicesFor(env, { model: client.key?.enforcedModel ?? json.model, key: client.key, capability, isStreamed })

/** Runs the code that builds a turn's body; if it throws, logs the request as rejected. */
export const prepared = <T>(c: Ctx, raw: TurnBody, turns: TurnKindOf, work: () => T): T => {
  const admission = { route: c.req.path, ...turns, body: raw, signal: c.req.raw.signal }
  return orReject(getArrival(c), admission, 'request', work)
}

const getArrival = (c: Ctx): Arrival => ({
  env: c.env,
  headers: c.req.raw.headers,
  client: c.get('client'),
  requestId: c.get('requestId'),
  arrivedAt: c.get('arrivedAt'),
})

/**
 * After falling back from a socket, a client may name the restricted pool only in the body. Serving it as an ordinary
 * turn would silently leave that pool (spec §1 Restricted 5). Throws `invalid_api_key`,
 * `unsupported_required_capability`, `required_capability_transport_unsupported`.
 */
const requireOrdinary = (json: JsonObject, { req, env }: Ctx): void => {
  if (!mentionsCapability(json)) return
  // Where keys are optional the gate admits clients without one.
  requireKey({ authorization: req.header('authorization') ?? null, keys: env.keys, now: env.clock.now() })
  if (demandsCapability(json))
    throw new AppError('required_capability_transport_unsupported', { param: 'client_metadata' })
}

/** Throws what `admit` throws. */
export const admitTurn = async (
  c: Ctx,
  admission: TurnKindOf & Pick<Admission, 'body' | 'passesDeltas' | 'isBySource'>,
): Promise<Answered> => {
  const turnAbort = new AbortController()
  const { env, req } = c
  try {
    requireOpen(env) // again, because reading the body took time
    const turn = await admit(getArrival(c), { route: req.path, ...admission, signal: turnAbort.signal })
    c.set('bodyHold', null) // settling the turn releases it
    return { c, env, turn, turnAbort, left: req.raw.signal }
  } catch (err) {
    c.header('server-timing', `admit;dur=${elapsedMs(c.get('arrivedAt'), env.clock.monotonic()).toFixed(3)}`)
    throw err
  }
}

/** The upstream keeps no state over HTTP (decisions §3 `previous_response_id`). */
export const rejectPreviousResponse = (previous: unknown): void => {
  if (previous !== undefined && previous !== null)
    throw new AppError('previous_response_not_found', { param: 'previous_response_id' })
}
