/** What every model route does before its own work: refuse while draining, lift the idle limit, read the body, build the turn. */
import type { Context } from 'hono'
import type { AppEnv } from '../../bindings.ts'
import { AppError } from '../../errors.ts'
import { createMiddleware } from '../../http/handlers.ts'
import { type Admission, admit } from '../admit.ts'
import type { Served } from '../answer.ts'
import { demandShallow } from '../nesting.ts'
import { type RawBody, RESPONSES_BODY_BYTES, readBody } from '../raw-body.ts'

/** A model may think for minutes; the server's idle limit would cut its stream (runtime note 2.1). */
export const longLived = createMiddleware(async (c, next) => {
  demandOpen(c)
  c.env.server?.timeout(c.req.raw, 0)
  await next()
})

const demandOpen = ({ env: { lifecycle, turns } }: Context<AppEnv>): void => {
  if (lifecycle.draining) throw new AppError('draining', { retryAfterSeconds: 5 })
  if (turns.size >= lifecycle.maxTurns) throw new AppError('busy', { retryAfterSeconds: 2 })
}

export const readTurnBody = (
  c: Context<AppEnv>,
  { isNative, maxBytes = RESPONSES_BODY_BYTES }: { isNative: boolean; maxBytes?: number },
): Promise<RawBody> => readBody(c.req.raw, { budget: c.env.bodies, maxBytes, tooLargeStatus: isNative ? 400 : 413 })

/** Admits, or gives the body back and throws. */
export const admitTurn = (c: Context<AppEnv>, admission: Omit<Admission, 'signal'>): Served => {
  const controller = new AbortController()
  try {
    demandOpen(c) // again: reading the body took its time
    return { c, turn: admit(c, { ...admission, signal: controller.signal }), controller }
  } catch (err) {
    admission.body.hold.release()
    throw err
  }
}

/** The upstream keeps no state over HTTP (decisions §3 `previous_response_id`). */
export const refusePreviousResponse = (previous: unknown): void => {
  if (previous !== undefined && previous !== null)
    throw new AppError('previous_response_not_found', { param: 'previous_response_id' })
}

const encoder = new TextEncoder()

/** A body that was translated: written anew, with the budget adjusted to its size. Throws `invalid_request_error`. */
export const rewritten = ({ bytes: written, hold }: RawBody, json: Record<string, unknown>): RawBody => {
  demandShallow(written)
  const bytes = encoder.encode(JSON.stringify(json))
  hold.resize(bytes.length)
  return { bytes, json, hold }
}
