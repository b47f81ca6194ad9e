/** Tests an outbound proxy with one request to ChatGPT's own trace page, which names the address it came from. */
import type { EgressTest } from '../../db/schema/egress.ts'
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { getEgressReason, type Route } from '../model/egress/route.ts'
import { wholeText } from './bounded-body.ts'
import type { Dial } from './dial.ts'
import { USER_AGENT } from './headers.ts'

const TIMEOUT_MS = 8000
const MAX_ANSWER_BYTES = 64 * 1024
/** Assumed: Cloudflare answers this path for every host it serves, with one `name=value` a line. */
const TRACE_PATH = '/cdn-cgi/trace'

interface TestDeps {
  dial: Dial
  clock: Clock
  /** The address of ChatGPT. The page that is fetched is on the same host. */
  baseUrl: string
}

/** At most 8 s. Never rejects: a failure is a result. */
export const testEgress = async ({ dial, clock, baseUrl }: TestDeps, route: Route): Promise<EgressTest> => {
  const [at, began] = [clock.now(), clock.monotonic()]
  const limit = new AbortController()
  const cancel = clock.after(TIMEOUT_MS, () => limit.abort(new AppError('upstream_timeout')))
  const done = (result: Pick<EgressTest, 'statusCode' | 'exitAddress' | 'error'>): EgressTest => ({
    at,
    ok: result.error === null,
    elapsedMs: Math.round(clock.monotonic() - began),
    ...result,
  })
  try {
    const init = { headers: { accept: '*/*', 'user-agent': USER_AGENT }, signal: limit.signal }
    const response = await dial.fetch(new URL(TRACE_PATH, baseUrl).href, init, route)
    const { status: statusCode } = response
    const text = await wholeText(response, MAX_ANSWER_BYTES)
    if (statusCode !== 200)
      return done({ statusCode, exitAddress: null, error: `ChatGPT answered with status ${statusCode}.` })
    return done({ statusCode, exitAddress: /^ip=([\da-f.:]{2,45})\s*$/im.exec(text)?.[1] ?? null, error: null })
  } catch (err) {
    return done({ statusCode: null, exitAddress: null, error: limit.signal.aborted ? LATE : getSentence(err) })
  } finally {
    cancel()
  }
}

const LATE = `No answer within ${TIMEOUT_MS / 1000} s.`

/** The proxy's own message; it contains no credentials (`tunnel.ts`). */
const getSentence = (err: unknown): string => {
  if (getEgressReason(err) && err instanceof Error && err.cause instanceof Error) return err.cause.message
  return err instanceof AppError ? err.message : 'The connection through the proxy was lost.'
}
