/** Records the usage that responses report in headers and `codex.rate_limits` events. */
import type { SseEvent } from '../../lib/sse.ts'
import { eventJson } from '../../lib/sse-payload.ts'
import { fromRateEvent, fromRateHeaders } from '../../model/accounts/usage-reports.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'

/** Identical numbers are recorded again only after this time. */
const REPEAT_MS = 5000

export const absorbRateHeaders = ({ pool, clock }: ProxyDeps, accountId: string, headers: Headers): void => {
  const primary = headers.get('x-codex-primary-used-percent')
  const secondary = headers.get('x-codex-secondary-used-percent')
  const reached = headers.get('x-codex-rate-limit-reached-type')
  if (primary === null && secondary === null && reached === null) return
  const account = pool.get(accountId)
  const at = clock.now()
  const print = `${primary}|${secondary}|${headers.get('x-codex-primary-reset-at')}|${headers.get('x-codex-secondary-reset-at')}|${reached}`
  if (account && account.ratePrint === print && at - account.rateSeenAt < REPEAT_MS) return
  if (account) Object.assign(account, { ratePrint: print, rateSeenAt: at })
  const snapshot = fromRateHeaders(headers, at)
  if (snapshot) pool.observe(accountId, snapshot)
}

export const absorbRateEvent = ({ pool, clock }: ProxyDeps, accountId: string, event: SseEvent): void => {
  const snapshot = fromRateEvent(eventJson(event.bytes), clock.now())
  if (snapshot) pool.observe(accountId, snapshot)
}
