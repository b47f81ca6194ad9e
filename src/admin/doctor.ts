/** `/doctor`: what is wrong and what to do, and two small routes by which the browser measures the reverse proxy before us. */
import type { Context } from 'hono'
import { DoctorPage } from '../../views/doctor.tsx'
import type { AppEnv } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { refuseOtherSites } from '../http/cross-site.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { reply } from '../http/reply.tsx'
import type { Clock } from '../lib/clock.ts'
import { iso } from '../lib/iso.ts'
import { holds } from '../model/permissions.ts'
import { type Finding, runChecks, type Verdict, worst } from '../ops/checks.ts'
import { EchoSession } from '../ops/echo-session.ts'
import { proxyChecks } from '../ops/proxy-checks.ts'

export interface DoctorReport {
  verdict: Verdict
  counts: Record<Verdict, number>
  /** null: only the summary is for this visitor. */
  findings: Finding[] | null
  /** ISO 8601 */
  checkedAt: string
  /** ISO 8601: when the page was made. */
  now: string
}

/** The summary to all who see the dashboard; paths, addresses and advice to those who can act on them. */
export const showDoctor = createHandlers(requires('dashboard:read'), async (c) => {
  const report = await c.env.ops.doctor.report()
  const findings = [...report.findings, ...(await runChecks(proxyChecks(seenRequest(c))))]
  const value: DoctorReport = {
    verdict: worst(findings),
    counts: countsOf(findings),
    findings: holds(c.var.principal.grants, 'security:write') ? findings : null,
    checkedAt: iso(report.at),
    now: iso(c.env.clock.now()),
  }
  return reply(c, value, DoctorPage)
})

const countsOf = (findings: readonly Finding[]): Record<Verdict, number> => {
  const counts = { ok: 0, unknown: 0, warning: 0, problem: 0 }
  for (const { verdict } of findings) counts[verdict]++
  return counts
}

const seenRequest = (c: Context<AppEnv>) => {
  const { FIREWALL_TRUST_PROXY_HEADERS, FIREWALL_TRUSTED_PROXY_CIDRS, PUBLIC_URL } = c.env.env
  return {
    peer: c.var.peer,
    clientIp: c.var.clientIp,
    headers: c.req.raw.headers,
    trust: FIREWALL_TRUST_PROXY_HEADERS ? FIREWALL_TRUSTED_PROXY_CIDRS : null,
    publicUrl: PUBLIC_URL ?? null,
  }
}

const EVENTS = 5
const PAUSE_MS = 200

/** Five events, 200 ms apart, under the headers of a model's answer: who gets them all at once sits behind a buffer. */
export const streamForDoctor = createHandlers(
  requires('security:write'),
  (c) =>
    new Response(eventsApart(c.env.clock, c.req.raw.signal), {
      headers: {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache, no-transform',
        'x-accel-buffering': 'no',
      },
    }),
)

const eventsApart = (clock: Clock, signal: AbortSignal): ReadableStream<Uint8Array> => {
  let sent = 0
  return new ReadableStream({
    async pull(controller) {
      if (sent > 0) await clock.sleep(PAUSE_MS, signal).catch(() => {}) // nobody reads any more
      if (signal.aborted) return controller.close()
      controller.enqueue(new TextEncoder().encode(`data: ${++sent}\n\n`))
      if (sent === EVENTS) controller.close()
    },
  })
}

/** Answers one message with itself. Throws `not_found` with status 426 when no upgrade arrived: that is the finding. */
export const socketForDoctor = createHandlers(requires('security:write'), (c) => {
  refuseOtherSites(c)
  if (c.req.header('upgrade')?.toLowerCase() !== 'websocket')
    throw new AppError('not_found', { status: 426, message: 'No WebSocket upgrade arrived here.' })
  const { server, clock } = c.env
  if (!server?.upgrade(c.req.raw, { data: new EchoSession(clock) }))
    throw new AppError('not_found', { status: 426, message: 'The upgrade could not be made.' })
  return new Response(null)
})
