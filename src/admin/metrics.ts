/** `GET /metrics` for Prometheus: for this machine, or with the token. */
import { timingSafeEqual } from 'node:crypto'
import { isLocal } from '../auth/caller.ts'
import { budgetClient } from '../auth/failure-budget.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { open } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { presentFamilies } from '../ops/gauges.ts'
import { CONTENT_TYPE, exposition, type Family, type Labels } from '../ops/prometheus.ts'

/** Loopback, or the bearer of `METRICS_TOKEN` (decisions §1). Throws `authentication_required`, `password_rate_limited`. */
export const showMetrics = createHandlers(open('metrics: this machine, or METRICS_TOKEN'), async (c) => {
  if (!isLocal(c) && !(await hasToken(c)))
    throw new AppError('authentication_required', {
      message:
        'Metrics are only open to this machine. From other machines, send SLUICE_METRICS_TOKEN as a bearer token.',
    })
  const number = c.env.lifecycle.process
  const common: Labels = number ? { process: String(number) } : {}
  return c.body(exposition(families(c), common), 200, { 'content-type': CONTENT_TYPE, 'cache-control': 'no-store' })
})

const hasToken = async (c: Ctx): Promise<boolean> => {
  const { METRICS_TOKEN } = c.env.env
  const [, given] = /^bearer\s+(\S+)$/i.exec(c.req.header('authorization') ?? '') ?? []
  if (METRICS_TOKEN === undefined || given === undefined) return false
  const giveBack = await c.env.failures.take(budgetClient(c), 'password_rate_limited')
  const [a, b] = [Buffer.from(given), Buffer.from(METRICS_TOKEN)]
  const isRight = a.length === b.length && timingSafeEqual(a, b)
  if (isRight) await giveBack()
  return isRight
}

const families = ({ env }: Ctx): Family[] => {
  const { pool, ledger, bodies, turns, sockets, liveCalls, ops, clock, lifecycle, server, responses } = env
  const elapsed = clock.monotonic()
  ops.turns.keepAccounts(new Set(pool.all().map(({ id }) => id)))
  const cpu = process.cpuUsage()
  return [
    ...ops.turns.families(),
    ...presentFamilies({
      pool,
      now: clock.now(),
      turns: turns.size,
      clientSockets: server?.pendingWebSockets ?? 0,
      liveCalls: liveCalls.size,
      keptUpstreamSockets: [...sockets].filter(({ upstream }) => upstream.accountAt(elapsed) !== null).length,
      heldBytes: bodies.heldBytes,
      responses,
      ledger,
      lastBackupAt: ops.backups.newestAt,
      startedAt: lifecycle.startedAt,
      rssBytes: process.memoryUsage.rss(),
      cpuSeconds: (cpu.user + cpu.system) / 1e6,
    }),
    ops.loopLag.family(),
  ]
}
