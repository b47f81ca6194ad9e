/** `/doctor`: problems and what to do about them. */
import { DoctorPage, type DoctorReport } from '../../views/doctor.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { reply } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { holds } from '../model/users/permissions.ts'
import { type Finding, getWorstVerdict, runChecks, type Verdict } from '../ops/checks.ts'
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
