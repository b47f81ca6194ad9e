/** Sign-in with a code entered on another device: requests the code and polls for its use. */
import { z } from 'zod'
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { HOUR_MS } from '../lib/durations.ts'
import { parseJson } from '../lib/json.ts'
import { getEgressReason } from '../model/egress/route.ts'
import { PLAIN_JSON_HEADERS } from './headers.ts'
import {
  CLIENT_ID,
  type CodeGrant,
  callIdentityService,
  getErrorCode,
  type OAuthCall,
  SignInError,
  UNREACHABLE,
} from './oauth.ts'

const CODE_PATH = '/api/accounts/deviceauth/usercode'
const TOKEN_PATH = '/api/accounts/deviceauth/token'
const REDIRECT_PATH = '/deviceauth/callback'
const VERIFICATION_PATH = '/codex/device'
const DEFAULT_TTL_MS = 900_000
const LONGEST_TTL_MS = HOUR_MS
/** OpenAI may send none, or 0. */
const SHORTEST_INTERVAL_SECONDS = 5
const LONGEST_INTERVAL_SECONDS = 60

export interface DeviceCode {
  /** Together with the user code it grants access to the account once signed in. */
  deviceAuthId: string
  userCode: string
  intervalSeconds: number
  /** ms since epoch. */
  expiresAt: number
}

const seconds = z.coerce.number().finite().nonnegative().optional().catch(undefined)

const Offer = z
  .object({
    device_auth_id: z.string().min(1),
    user_code: z.string().min(1).max(64).optional(),
    usercode: z.string().min(1).max(64).optional(),
    interval: seconds,
    expires_in: seconds,
    expires_at: z.union([z.string(), z.number()]).optional(),
  })
  .transform(({ user_code, usercode, ...rest }) => ({ ...rest, userCode: user_code ?? usercode }))

/** Throws `device_auth_unavailable`, `device_auth_failed`, `upstream_unreachable`, `egress_unavailable`. */
export const requestDeviceCode = async (context: OAuthCall, now: number): Promise<DeviceCode> => {
  const { status, text } = await post(context, CODE_PATH, { client_id: CLIENT_ID }).catch((cause: unknown) => {
    if (cause instanceof SignInError && getEgressReason(cause)) throw cause.cause
    throw new AppError('upstream_unreachable', { message: 'OpenAI could not be reached.', cause })
  })
  if (status === 404) throw new AppError('device_auth_unavailable')
  const offer = Offer.safeParse(parseJson(text))
  if (status >= 400 || !offer.success || offer.data.userCode === undefined) {
    const code = getErrorCode(text)
    throw new AppError('device_auth_failed', {
      message: `OpenAI did not return a code. It answered HTTP ${status}${code ? ` (${code})` : ''}.`,
    })
  }
  const { device_auth_id: deviceAuthId, userCode, interval } = offer.data
  return { deviceAuthId, userCode, intervalSeconds: atLeastTheFloor(interval), expiresAt: getExpiry(offer.data, now) }
}

const atLeastTheFloor = (interval = 0): number =>
  Math.min(Math.max(Math.ceil(interval), SHORTEST_INTERVAL_SECONDS), LONGEST_INTERVAL_SECONDS)

/** Given as a duration, as a date, or not at all; values in the past or beyond an hour are ignored. */
const getExpiry = (offer: z.output<typeof Offer>, now: number): number => {
  const date = typeof offer.expires_at === 'number' ? offer.expires_at * 1000 : Date.parse(offer.expires_at ?? '')
  const stated = offer.expires_in ? now + offer.expires_in * 1000 : date
  return stated > now && stated <= now + LONGEST_TTL_MS ? Math.floor(stated) : now + DEFAULT_TTL_MS
}

export const verificationUrl = (authBaseUrl: string): string => authBaseUrl + VERIFICATION_PATH

type DeviceAnswer = { kind: 'pending' } | { kind: 'slow-down' } | { kind: 'granted'; grant: CodeGrant }

const Approved = z.object({ authorization_code: z.string().min(1), code_verifier: z.string().min(1) })

/**
 * Polls once. Temporary failures are `pending`. Throws `SignInError` when the sign-in is over, and the reason of
 * `signal`.
 */
export const pollDevice = async (
  context: OAuthCall,
  { deviceAuthId, userCode }: Pick<DeviceCode, 'deviceAuthId' | 'userCode'>,
  signal: AbortSignal,
): Promise<DeviceAnswer> => {
  const question = { device_auth_id: deviceAuthId, user_code: userCode }
  const answer = await post(context, TOKEN_PATH, question, signal).catch((err: unknown) => {
    if (err instanceof SignInError && err.code === UNREACHABLE) return null
    throw err
  })
  if (answer === null || answer.status >= 500) return { kind: 'pending' }
  const { status, text } = answer
  const code = status === 200 ? null : getErrorCode(text)
  if (status === 429 || code === 'slow_down') return { kind: 'slow-down' }
  if (code === 'authorization_pending') return { kind: 'pending' }
  const ending = ENDED.get(code ?? '')
  if (ending !== undefined) throw new SignInError(ending, code)
  if (status === 403 || status === 404) return { kind: 'pending' }
  const approved = Approved.safeParse(parseJson(text))
  if (!approved.success) throw new SignInError(`OpenAI ended the sign-in with HTTP ${status}.`, code)
  const { authorization_code, code_verifier: verifier } = approved.data
  const redirectUri = context.authBaseUrl + REDIRECT_PATH
  return { kind: 'granted', grant: { code: authorization_code, verifier, redirectUri } }
}

/** Added to the interval after each `slow_down` (RFC 8628 §3.5). */
const SLOW_DOWN_SECONDS = 5

interface Waiting {
  clock: Pick<Clock, 'sleep'>
  signal: AbortSignal
}

/** Polls until the user has signed in. Throws `SignInError` when the sign-in is over, and the reason of `signal`. */
export const waitForGrant = async (
  context: OAuthCall,
  device: Pick<DeviceCode, 'deviceAuthId' | 'userCode'> & { intervalSeconds: number | null },
  { clock, signal }: Waiting,
): Promise<CodeGrant> => {
  let intervalSeconds = device.intervalSeconds ?? SLOW_DOWN_SECONDS
  for (;;) {
    await clock.sleep(intervalSeconds * 1000, signal)
    const answer = await pollDevice(context, device, signal)
    if (answer.kind === 'granted') return answer.grant
    if (answer.kind === 'slow-down') intervalSeconds += SLOW_DOWN_SECONDS
  }
}

/** RFC 8628 §3.5. */
const ENDED: ReadonlyMap<string, string> = new Map([
  ['access_denied', 'The sign-in was rejected on the other device.'],
  ['expired_token', 'The code has expired.'],
])

const post = (context: OAuthCall, path: string, json: object, signal?: AbortSignal) =>
  callIdentityService(context, path, {
    method: 'POST',
    headers: { ...PLAIN_JSON_HEADERS, 'content-type': 'application/json' },
    body: JSON.stringify(json),
    ...(signal && { signal }),
  })
