/** Sends one tiny real turn to check whether the upstream serves an account. */
import { AppError } from '../errors.ts'
import { getEgressReason } from '../model/egress/route.ts'
import type { AccountCallDeps } from './account-call.ts'
import { type AccountCredentials, USER_AGENT, upstreamHeaders } from './headers.ts'
import { isTerminal, SseStream } from './stream.ts'

interface ProbeResult {
  /** HTTP status of the upstream; 0 when unreachable or timed out. */
  status: number
  /** The turn completed. */
  ok: boolean
}

const TIMEOUT_MS = 30_000

/** At most 30 s. Refreshes a rejected token once. Throws what `Credentials` throws, and `egress_unavailable`. */
export const probe = async (deps: AccountCallDeps, accountId: string, model: string): Promise<ProbeResult> => {
  const account = await deps.credentials.fresh(accountId)
  const first = await probeOnce(deps, account, model)
  if (first.status !== 401) return first
  return probeOnce(deps, await deps.credentials.refresh(accountId, account.accessToken), model)
}

const probeOnce = async (
  { dial, baseUrl, clock }: AccountCallDeps,
  account: AccountCredentials,
  model: string,
): Promise<ProbeResult> => {
  const limit = new AbortController()
  const cancel = clock.after(TIMEOUT_MS, () => limit.abort(new AppError('upstream_timeout')))
  const kind = { accept: 'text/event-stream', contentType: 'application/json' }
  try {
    const response = await dial.fetch(
      `${baseUrl}/codex/responses`,
      {
        method: 'POST',
        headers: upstreamHeaders({ 'user-agent': USER_AGENT }, account, kind),
        body: JSON.stringify(turnFor(model)),
        signal: limit.signal,
      },
      account.route,
    )
    if (response.status === 200 && response.body)
      return { status: 200, ok: await isServed(new SseStream(response.body, clock)) }
    await response.body?.cancel()
    return { status: response.status, ok: false }
  } catch (err) {
    if (getEgressReason(err)) throw err // ChatGPT was not reached
    return { status: 0, ok: false } // a valid result of a probe
  } finally {
    cancel()
  }
}

const turnFor = (model: string) => ({
  model,
  instructions: 'Answer with one word.',
  input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Say OK.' }] }],
  stream: true,
  store: false,
})

const isServed = async (stream: SseStream): Promise<boolean> => {
  for (;;) {
    const batch = await stream.read()
    if (batch === null) return false
    const terminal = batch.find(({ type }) => isTerminal(type))
    if (!terminal) continue
    stream.drain()
    return terminal.type === 'response.completed' || terminal.type === 'response.incomplete'
  }
}
