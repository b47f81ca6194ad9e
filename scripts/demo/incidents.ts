/** The failures in the demo's week: two incidents, and single failures now and then. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/lib/durations.ts'
import type { Random } from '../../src/lib/random.ts'

export interface Failure {
  code: string
  message: string
  phase: 'connect' | 'first_event' | 'upstream' | 'stream' | 'select'
  /** The status for the client. */
  httpStatus: number
  /** The HTTP status from ChatGPT; null if it did not answer. */
  upstreamStatus: number | null
  /** How many accounts were tried. */
  tried: number
}

interface Incident {
  /** How long ago, ms. */
  startMs: number
  lengthMs: number
  /** Share of the requests that fail. */
  share: number
  /** The least number of requests in it, even in a quiet hour. */
  requests: number
  failure: Failure
}

/** In order of time, with retries that failed too, because all accounts were affected. */
export const INCIDENTS: readonly Incident[] = [
  {
    startMs: 2 * DAY_MS + 5 * HOUR_MS,
    lengthMs: 40 * MINUTE_MS,
    share: 0.55,
    requests: 260,
    failure: {
      code: 'server_is_overloaded',
      message: 'ChatGPT is overloaded. Try again later.',
      phase: 'upstream',
      httpStatus: 503,
      upstreamStatus: 503,
      tried: 3,
    },
  },
  {
    startMs: 2.6 * HOUR_MS,
    lengthMs: 18 * MINUTE_MS,
    share: 0.7,
    requests: 120,
    failure: {
      code: 'upstream_unreachable',
      message: 'ChatGPT could not be reached: the connection was refused.',
      phase: 'connect',
      httpStatus: 502,
      upstreamStatus: null,
      tried: 2,
    },
  },
]

const SINGLE: readonly Failure[] = [
  {
    code: 'context_length_exceeded',
    message: 'The input exceeds the context window.',
    phase: 'upstream',
    httpStatus: 400,
    upstreamStatus: 400,
    tried: 1,
  },
  {
    code: 'stream_incomplete',
    message: 'ChatGPT closed the connection in the middle of the answer.',
    phase: 'stream',
    httpStatus: 200,
    upstreamStatus: 200,
    tried: 1,
  },
  {
    code: 'upstream_timeout',
    message: 'ChatGPT did not respond in time.',
    phase: 'first_event',
    httpStatus: 504,
    upstreamStatus: null,
    tried: 2,
  },
  {
    code: 'server_error',
    message: 'An error occurred while processing.',
    phase: 'upstream',
    httpStatus: 502,
    upstreamStatus: 500,
    tried: 2,
  },
]

const SINGLE_SHARE = 0.0025

/** The failure of a request that starts at `at`; null: it succeeds. */
export const failureAt = (at: number, now: number, random: Random): Failure | null => {
  const incident = incidentAt(at, now)
  if (incident) return random.float() < incident.share ? incident.failure : null
  if (random.float() >= SINGLE_SHARE) return null
  return SINGLE[Math.floor(random.float() * SINGLE.length)] ?? null
}

const incidentAt = (at: number, now: number): Incident | undefined =>
  INCIDENTS.find(({ startMs, lengthMs }) => at >= now - startMs && at < now - startMs + lengthMs)
