/** Sends one message to one channel, in one attempt of at most ten seconds. */

import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import type { SmtpTarget, Target } from '../../model/alerts/channel-input.ts'
import type { ChannelRow } from '../../model/alerts/channels.ts'
import type { AlertMessage } from '../../model/alerts/messages.ts'
import type { GuardedFetch } from '../guarded-fetch.ts'
import { type AlertRequest, toHeartbeat, toRequest } from './requests.ts'

export const TRY_MS = 10_000

export interface SendDeps {
  guardedFetch: GuardedFetch
  clock: Clock
}

/** The target with its secrets. */
export interface Recipient extends Pick<ChannelRow, 'allowPrivateAddress'> {
  target: Target
  secret: string | null
}

/**
 * Returns null if the message was sent, otherwise the reason, without secrets. Rejects only with the reason of
 * `signal`.
 */
export const sendAlert = (
  deps: SendDeps,
  { target, secret, ...rules }: Recipient,
  message: AlertMessage,
  signal?: AbortSignal,
): Promise<string | null> =>
  inTime(deps, signal, (limit) =>
    target.kind === 'smtp'
      ? mail(deps, { target, message, allowsPrivate: rules.allowPrivateAddress, signal: limit })
      : call(deps, toRequest(target, { message, secret, now: deps.clock.now() }), {
          allowsPrivate: rules.allowPrivateAddress,
          signal: limit,
        }),
  )

/** Like `sendAlert`, but for the state of an Uptime Kuma monitor. */
export const sendHeartbeat = (
  deps: SendDeps,
  { target, allowPrivateAddress }: Recipient & { target: Extract<Target, { kind: 'uptime_kuma' }> },
  state: { isUp: boolean; text: string },
  signal?: AbortSignal,
): Promise<string | null> =>
  inTime(deps, signal, (limit) =>
    call(deps, toHeartbeat(target.url, state), { allowsPrivate: allowPrivateAddress, signal: limit }),
  )

/** The reason `target` is not allowed, or null if no reason is known. */
export const problemOfTarget = async (
  { guardedFetch }: Pick<SendDeps, 'guardedFetch'>,
  target: Target,
  allowsPrivate: boolean,
): Promise<string | null> => {
  const resolved =
    target.kind === 'smtp'
      ? await guardedFetch.resolveDirectly(mailUrl(target), { allowsPrivate })
      : await guardedFetch.resolve(new URL(target.url), { allowsPrivate })
  return resolved.problem
}

const inTime = async (
  { clock }: Pick<SendDeps, 'clock'>,
  signal: AbortSignal | undefined,
  send: (limit: AbortSignal) => Promise<string | null>,
): Promise<string | null> => {
  const limit = new AbortController()
  const cancel = clock.after(TRY_MS, () => limit.abort(new TooLate()))
  try {
    return await send(signal ? AbortSignal.any([signal, limit.signal]) : limit.signal)
  } catch (err) {
    signal?.throwIfAborted()
    return reasonOf(err)
  } finally {
    cancel()
  }
}

class TooLate extends Error {}

interface Sending {
  allowsPrivate: boolean
  signal: AbortSignal
}

const call = async (
  { guardedFetch }: SendDeps,
  { url, headers, body }: AlertRequest,
  { allowsPrivate, signal }: Sending,
): Promise<string | null> => {
  const { problem, addresses } = await abortable(guardedFetch.resolve(new URL(url), { allowsPrivate }), signal)
  if (problem !== null) return problem
  const response = await guardedFetch.fetchAt(addresses, url, {
    headers: { ...headers, 'user-agent': 'Sluice', 'accept-encoding': 'identity' },
    ...(body !== null && { method: 'POST', body }),
    signal,
  })
  void response.body?.cancel().catch(() => {}) // an unread body keeps its connection
  if (response.status >= 300 && response.status < 400)
    return 'The server answered with a redirect, which is not followed. Use the address it redirects to.'
  return response.ok ? null : `The server answered with HTTP ${response.status}.`
}

const mail = async (
  { guardedFetch }: SendDeps,
  { target, message, allowsPrivate, signal }: Sending & { target: SmtpTarget; message: AlertMessage },
): Promise<string | null> => {
  const resolved = guardedFetch.resolveDirectly(mailUrl(target), { allowsPrivate })
  const { problem, addresses } = await abortable(resolved, signal)
  if (problem !== null) return problem
  const [address] = addresses
  if (address === undefined) return UNRESOLVED
  const { sendMail } = await import('./mail.ts')
  await sendMail(target, { message, address, timeoutMs: TRY_MS, signal })
  return null
}

/** The target as a URL, to check its address. */
const mailUrl = ({ host, port }: SmtpTarget): URL =>
  new URL(`smtp://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${port}`)

const abortable = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  const stop = Promise.withResolvers<never>()
  const onAbort = () => stop.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  stop.promise.catch(() => {}) // the request may end first
  return Promise.race([work, stop.promise]).finally(() => signal.removeEventListener('abort', onAbort))
}

const UNRESOLVED = 'The host name could not be resolved.'

/** Only the codes of mail servers are shown, because their messages can contain addresses and the message itself. */
const reasonOf = (err: unknown): string => {
  if (err instanceof TooLate) return `No answer within ${TRY_MS / 1000} seconds.`
  if (err instanceof AppError) return err.message
  if (!(err instanceof Error)) return 'The connection failed.'
  if ('responseCode' in err && typeof err.responseCode === 'number') {
    const isLogin = 'code' in err && err.code === 'EAUTH'
    return isLogin
      ? `The mail server rejected the user name or password (${err.responseCode}).`
      : `The mail server answered with ${err.responseCode}.`
  }
  if (err.message === UNRESOLVED) return UNRESOLVED
  const code = 'code' in err && typeof err.code === 'string' ? ` (${err.code})` : ''
  return `The connection failed${code}.`
}
