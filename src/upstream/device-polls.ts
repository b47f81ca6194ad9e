/** Polls the identity service for each pending device sign-in. */
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Sealer } from '../lib/seal.ts'
import type { FlowRow } from '../model/accounts/oauth-flows.ts'
import type { RouteOfSignIn } from './code-exchanges.ts'
import { getDeviceAuthId } from './flow-secrets.ts'
import { type CodeGrant, type OAuthContext, SignInError } from './oauth.ts'
import { waitForGrant } from './oauth-device.ts'

interface DevicePollsDeps {
  sealer: Sealer
  clock: Clock
  log: Log
  oauth: OAuthContext
  getRoute: RouteOfSignIn
  granted: (flow: FlowRow, grant: CodeGrant) => Promise<void>
  /** `message` is shown to the user who is waiting. */
  refused: (flow: FlowRow, message: string) => Promise<unknown>
}

export class DevicePolls {
  readonly #deps: DevicePollsDeps
  readonly #running = new Map<string, AbortController>()

  constructor(deps: DevicePollsDeps) {
    this.#deps = deps
  }

  /** Polls exactly these flows from now on. */
  follow(flows: readonly FlowRow[]): void {
    const ids = new Set(flows.map(({ id }) => id))
    for (const [id, poll] of this.#running) if (!ids.has(id)) this.#stop(id, poll)
    for (const flow of flows) if (!this.#running.has(flow.id)) void this.#poll(flow)
  }

  #stop(id: string, poll: AbortController): void {
    this.#running.delete(id)
    poll.abort(new Error('This sign-in has ended.'))
  }

  async #poll(flow: FlowRow): Promise<void> {
    const controller = new AbortController()
    this.#running.set(flow.id, controller)
    try {
      await this.#toItsEnd(flow, controller.signal)
    } catch (err) {
      // If its row is still pending, the next `follow` starts again.
      this.#running.delete(flow.id)
      this.#deps.log.error('a sign-in could not be polled', { flow: flow.id, err })
    }
  }

  async #toItsEnd(flow: FlowRow, signal: AbortSignal): Promise<void> {
    const { granted, refused } = this.#deps
    try {
      await granted(flow, await this.#untilGranted(flow, signal))
    } catch (err) {
      if (signal.aborted) return
      if (!(err instanceof SignInError)) throw err
      await refused(flow, err.message)
    }
  }

  async #untilGranted(flow: FlowRow, signal: AbortSignal): Promise<CodeGrant> {
    const { sealer, oauth, clock, getRoute } = this.#deps
    const { intervalSeconds } = flow
    const device = { deviceAuthId: getDeviceAuthId(flow, sealer), userCode: flow.userCode ?? '', intervalSeconds }
    return waitForGrant({ ...oauth, route: await getRoute(flow) }, device, { clock, signal })
  }
}
