/** `/doctor`: problems and what to do about them, and what a browser measures about proxies in front of Sluice. */

import { z } from 'zod'
import { DoctorPage, type DoctorReport } from '../../views/doctor.tsx'
import { KeyTestChecks } from '../../views/keys/test.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { rejectOtherSites } from '../http/cross-site.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import type { Clock } from '../lib/clock.ts'
import { IDLE_SECONDS } from '../lib/idle-limit.ts'
import { iso } from '../lib/iso.ts'
import { encodeUtf8 } from '../lib/utf8.ts'
import { holds } from '../model/users/permissions.ts'
import { type Finding, getWorstVerdict, runChecks, type Verdict } from '../ops/checks.ts'
import { EchoSession } from '../ops/echo-session.ts'
import { proxyChecks } from '../ops/proxy-checks.ts'

/** The summary for all dashboard users; paths, addresses and advice for users who can act on them. */
export const showDoctor = createHandlers(requires('dashboard:read'), async (c) => {
  const report = await c.env.ops.doctor.report()
  const findings = [...report.findings, ...(await runChecks(proxyChecks(seenRequest(c))))]
  const value: DoctorReport = {
    verdict: getWorstVerdict(findings),
    counts: getCounts(findings),
    findings: holds(c.var.principal.grants, 'security:write') ? findings : null,
    checkedAt: iso(report.at),
    now: iso(c.env.clock.now()),
  }
  return reply(c, value, DoctorPage)
})

const getCounts = (findings: readonly Finding[]): Record<Verdict, number> => {
  const counts = { ok: 0, unknown: 0, warning: 0, problem: 0 }
  for (const { verdict } of findings) counts[verdict]++
  return counts
}

const seenRequest = (c: Ctx) => {
  const { FIREWALL_TRUST_PROXY_HEADERS, FIREWALL_TRUSTED_PROXY_CIDRS, PUBLIC_URL } = c.env.env
  return {
    peer: c.var.peer,
    clientIp: c.var.clientIp,
    headers: c.req.raw.headers,
    trust: FIREWALL_TRUST_PROXY_HEADERS ? FIREWALL_TRUSTED_PROXY_CIDRS : null,
    publicUrl: PUBLIC_URL ?? null,
  }
}

/** Users who see the whole doctor page, and users who create and test keys. */
const measurer = () => requires('security:write', { or: 'api_keys:write' })

/** Pauses before each event, in ms. If all five events arrive together, a proxy buffers them. */
const TOGETHER_MS = [0, 200, 200, 200, 200]
/** Pauses as long as between keepalives, for 90 seconds, to test how long a connection can last. */
const LASTING_MS = Array.from({ length: 12 }, () => 7500)

const Pace = z.object({
  lasting: z.literal('true').optional().describe('Streams for 90 seconds.'),
})

/** The checks of a key's test. They are loaded separately, because they would be a quarter of the page. */
export const showKeyTestChecks = createHandlers(measurer(), (c) => reply(c, {}, KeyTestChecks))

/** Concurrent measurements, in total and per user and address; a browser runs them one after another. */
const MOST = 32
const MAX_EACH = 4

/**
 * Sends events with the headers of a model response. The last one is `end`; if it is missing, the stream was cut off.
 * Throws `busy`.
 */
export const streamForBrowser = createHandlers(measurer(), query(Pace), (c) => {
  const pauses = c.req.valid('query').lasting ? [...TOGETHER_MS, ...LASTING_MS] : TOGETHER_MS
  const leave = takeSeat(c)
  return c.body(eventsApart(c.env.clock, pauses, leave), 200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
})

/** Returns the release function, safe to call repeatedly. Throws `busy`. */
const takeSeat = (c: Ctx): (() => void) => {
  const leave = c.env.seats.take([
    { of: 'measure', most: MOST },
    { of: `measure ${c.var.principal.id} ${c.var.clientIp}`, most: MAX_EACH },
  ])
  if (!leave)
    throw new AppError('busy', {
      message: 'Too many checks are running. Try again in a minute.',
      retryAfterSeconds: 30,
    })
  return leave
}

const eventsApart = (clock: Clock, pausesMs: readonly number[], leave: () => void): ReadableStream<Uint8Array> => {
  const reader = new AbortController()
  let sent = 0
  return new ReadableStream({
    async pull(controller) {
      const pauseMs = pausesMs[sent] ?? 0
      if (pauseMs > 0) await clock.sleep(pauseMs, reader.signal)
      const isLast = ++sent === pausesMs.length
      controller.enqueue(encodeUtf8(`data: ${isLast ? 'end' : sent}\n\n`))
      if (!isLast) return
      leave()
      controller.close()
    },
    cancel: () => {
      leave()
      reader.abort()
    },
  })
}

/**
 * Echoes one message. Throws `not_found` with status 426 if no upgrade arrived, which is also a result of the check.
 */
export const socketForBrowser = createHandlers(measurer(), (c) => {
  rejectOtherSites(c)
  if (c.req.header('upgrade')?.toLowerCase() !== 'websocket')
    throw new AppError('not_found', { status: 426, message: 'The request arrived without a WebSocket upgrade.' })
  const { server, clock } = c.env
  if (!server?.upgrade(c.req.raw, { data: new EchoSession(clock) }))
    throw new AppError('not_found', { status: 426, message: 'The WebSocket upgrade failed.' })
  return new Response(null)
})

/** Upload limits: higher than the script needs, but low enough that no client can block others. */
const MAX_BYTES = 8 * 1024 * 1024
const UPLOAD_MS = 60_000
/** A header name with an underscore, like `session_id`. nginx drops such headers by default. */
const PROBE_HEADER = 'x_sluice_probe'

/**
 * Reads and discards a body of up to 8 MiB; returns its size and whether the header arrived. Throws `busy`,
 * `payload_too_large`, `cross_site_request_rejected`.
 */
export const uploadFromBrowser = createHandlers(measurer(), async (c) => {
  rejectOtherSites(c)
  if (Number(c.req.header('content-length')) > MAX_BYTES) throw new AppError('payload_too_large')
  const leave = takeSeat(c)
  try {
    c.env.server?.timeout(c.req.raw, 0) // the idle limit would cut off a slow upload
    const bytes = await countBytes(c)
    c.env.server?.timeout(c.req.raw, IDLE_SECONDS)
    await c.get('passAgain')(c) // the session may have ended in the meantime
    return c.json({ bytes, underscore: c.req.header(PROBE_HEADER) !== undefined })
  } finally {
    leave()
  }
})

/** The number of bytes received within a minute. Throws `payload_too_large` as soon as there are too many. */
const countBytes = async ({ req, env }: Ctx): Promise<number> => {
  const reader = req.raw.body?.getReader()
  if (!reader) return 0
  const stop = env.clock.after(UPLOAD_MS, () => void reader.cancel().catch(() => {}))
  let bytes = 0
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      bytes += piece.value.length
      if (bytes > MAX_BYTES) throw new AppError('payload_too_large')
    }
  } finally {
    stop()
  }
  return bytes
}
