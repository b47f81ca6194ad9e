/**
 * The sign-ins that add or renew an account: begun by somebody on the dashboard, ended by a callback, a pasted address or a
 * polled device. A code is exchanged once, whoever brings it how often; what the rows say decides what waits and listens.
 */
import { commit } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import { getAccount } from '../model/accounts.ts'
import type { Actor } from '../model/audit.ts'
import {
  asOf,
  beginFlow,
  cancelFlow,
  expireFlows,
  type FlowRow,
  failFlow,
  flowOfState,
  getFlow,
  getFlowOf,
  latestFlowOf,
  type NewFlow,
  pendingFlows,
} from '../model/oauth-flows.ts'
import { type CallbackAnswer, CallbackListener } from './callback-listener.ts'
import { actorOf, CodeExchanges, type CodeExchangesDeps } from './code-exchanges.ts'
import { DevicePolls } from './device-polls.ts'
import { browserSecretOf, type FlowBase, newBrowserFlow, newDeviceFlow } from './flow-secrets.ts'
import { authorizationUrl, callbackUrl, readCallback } from './oauth-browser.ts'
import { requestDeviceCode, verificationUrl } from './oauth-device.ts'

/** More than there are flows at once. */
const MOST_HOMES = 32

interface SignInsDeps extends CodeExchangesDeps {
  callback: { host: string; port: number }
}

interface Beginning {
  method: FlowRow['method']
  /** To be signed in again; null: whoever signs in is added. */
  accountId: string | null
  actor: Actor
  /** Origin of the dashboard, where the browser goes back to. */
  home: string
}

/** What the person needs who signs in; null where the flow has ended or is of the other kind. */
interface Offer {
  authorizationUrl: string | null
  verificationUrl: string | null
}

export class SignIns {
  readonly #deps: SignInsDeps
  readonly #listener: CallbackListener
  readonly #polls: DevicePolls
  readonly #exchanges: CodeExchanges
  /** Where the browser of a flow goes back to; forgotten with the process. */
  readonly #homes = new Map<string, string>()
  #cancelExpiry = () => {}
  #isStopped = false

  constructor(deps: SignInsDeps) {
    this.#deps = deps
    this.#exchanges = new CodeExchanges({ ...deps, onEnd: () => this.follow() })
    this.#listener = new CallbackListener({
      ...deps.callback,
      clock: deps.clock,
      log: deps.log,
      answer: (url, address) => this.#answer(url, address),
    })
    this.#polls = new DevicePolls({
      ...deps,
      granted: (flow, grant) => this.#exchanges.once(flow, grant, null),
      refused: (flow, message) => this.#fail(flow, message, null),
    })
  }

  /** Whether callbacks reach us by themselves. */
  get isListening(): boolean {
    return this.#listener.isOpen
  }

  /** The redirect of every browser flow. */
  get callbackUrl(): string {
    return callbackUrl(this.#deps.callback.port)
  }

  /** Throws `account_not_found`, and for a device what `requestDeviceCode` does. */
  async begin({ method, accountId, actor, home }: Beginning): Promise<FlowRow> {
    const { db, clock, random } = this.#deps
    if (accountId !== null) getAccount(db, accountId)
    const flow = await this.#newFlow({ id: random.id('flow'), method, accountId })
    const at = clock.now()
    const row = commit(db, (tx) => {
      expireFlows(tx, at, this.#exchanges.ids)
      return beginFlow(tx, flow, { ...actor, at })
    })
    this.#homes.set(row.id, home)
    for (const oldest of this.#homes.keys()) if (this.#homes.size > MOST_HOMES) this.#homes.delete(oldest)
    this.follow()
    return row
  }

  async #newFlow(base: FlowBase): Promise<NewFlow> {
    const { oauth, sealer, random, clock } = this.#deps
    const now = clock.now()
    return base.method === 'device'
      ? newDeviceFlow(base, await requestDeviceCode(oauth, now), sealer)
      : newBrowserFlow(base, { sealer, random, now })
  }

  /** As it stands now; without an id the one `who` began last. Throws `oauth_flow_not_found`, also for somebody else's. */
  status(who: string, id: string | null): FlowRow {
    const { db } = this.#deps
    return this.#asOfNow(id === null ? latestFlowOf(db, who) : getFlowOf(db, who, id))
  }

  /** The newest pending sign-in of `who` by this method for this account (null: to add one); null: there is none. */
  pending({ who, method, accountId }: Pick<FlowRow, 'method' | 'accountId'> & { who: string }): FlowRow | null {
    const { db, clock } = this.#deps
    const now = clock.now()
    const isIt = (flow: FlowRow) =>
      flow.createdBy === who && flow.method === method && flow.accountId === accountId && flow.expiresAt > now
    return pendingFlows(db).findLast(isIt) ?? null
  }

  #asOfNow(row: FlowRow): FlowRow {
    return this.#exchanges.of(row.id) ? row : asOf(row, this.#deps.clock.now())
  }

  offerOf(flow: FlowRow): Offer {
    const { oauth, sealer } = this.#deps
    if (flow.status !== 'pending') return { authorizationUrl: null, verificationUrl: null }
    return flow.method === 'device'
      ? { authorizationUrl: null, verificationUrl: verificationUrl(oauth.authBaseUrl) }
      : {
          authorizationUrl: authorizationUrl(oauth.authBaseUrl, browserSecretOf(flow, sealer), this.callbackUrl),
          verificationUrl: null,
        }
  }

  /**
   * Takes the address a browser came back to. Of a flow that has ended it changes nothing, and of several at once each is
   * told what came of the first. `who` null: a browser brought it, which is nobody yet. Throws `invalid_callback` for an
   * address that belongs to no sign-in, to another, or to somebody else's.
   */
  async receive(
    address: string,
    from: { who: string | null; flowId: string | null; address: string | null },
  ): Promise<FlowRow> {
    const { db, clock } = this.#deps
    const said = readCallback(address)
    if (said === null) throw new AppError('invalid_callback', { param: 'callbackUrl' })
    const flow = flowOfState(db, said.state)
    const isOther = from.flowId !== null && from.flowId !== flow.id
    if (isOther || (from.who !== null && from.who !== flow.createdBy))
      throw new AppError('invalid_callback', { param: 'callbackUrl' })
    const isOver = asOf(flow, clock.now()).status !== 'pending' && !this.#exchanges.of(flow.id)
    if (!isOver) await this.#end(flow, said, from.address)
    return this.#asOfNow(getFlow(db, flow.id))
  }

  async #end(flow: FlowRow, said: NonNullable<ReturnType<typeof readCallback>>, address: string | null): Promise<void> {
    if (said.kind === 'refused') {
      return this.#exchanges.of(flow.id) ?? this.#fail(flow, refusalText(said.error), address)
    }
    const { verifier } = browserSecretOf(flow, this.#deps.sealer)
    return this.#exchanges.once(flow, { code: said.code, verifier, redirectUri: this.callbackUrl }, address)
  }

  /**
   * Ends a sign-in that waits: its address and its code open nothing any more, and the port is free at once, perhaps for the
   * program that the person wants to use instead. One that has ended stays as it is. Throws `oauth_flow_not_found`, also for
   * somebody else's.
   */
  cancel(id: string, actor: Actor): FlowRow {
    const { db } = this.#deps
    commit(db, (tx) => cancelFlow(tx, id, actor))
    this.follow()
    this.#listener.closeIfUnused()
    return this.status(actor.id, id)
  }

  /** Waits, polls and listens for exactly the flows that are pending. Run after every change, and once at the start. */
  follow(): void {
    if (this.#isStopped) return
    const { db, clock } = this.#deps
    const now = clock.now()
    if (pendingFlows(db).some(({ id, expiresAt }) => expiresAt <= now && !this.#exchanges.of(id)))
      commit(db, (tx) => expireFlows(tx, now, this.#exchanges.ids))
    const pending = pendingFlows(db)
    this.#polls.follow(pending.filter(({ method }) => method === 'device'))
    if (pending.some(({ method }) => method === 'browser')) this.#listener.open()
    else this.#listener.closeSoon()
    this.#cancelExpiry()
    const next = Math.min(...pending.map(({ expiresAt }) => expiresAt))
    this.#cancelExpiry = Number.isFinite(next) ? clock.after(Math.max(1000, next - now), () => this.follow()) : () => {}
  }

  /** Nothing waits any more; what is being exchanged is finished. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelExpiry()
    this.#polls.follow([])
    await this.#exchanges.settled()
    this.#listener.close()
  }

  #fail(flow: FlowRow, message: string, address: string | null): void {
    commit(this.#deps.db, (tx) => failFlow(tx, flow, message, actorOf(this.#deps, flow, address)))
    this.follow()
  }

  async #answer(url: string, address: string | null): Promise<CallbackAnswer> {
    try {
      const flow = await this.receive(url, { who: null, flowId: null, address })
      const home = this.#homes.get(flow.id)
      const page = flow.status === 'success' ? SIGNED_IN : NOT_SIGNED_IN
      return home === undefined ? page : { ...page, location: `${home}/accounts/new/browser?flow=${flow.id}` }
    } catch (err) {
      if (err instanceof AppError && (err.code === 'invalid_callback' || err.code === 'oauth_flow_not_found'))
        return UNKNOWN
      throw err
    }
  }
}

/** `error` is a word of the service, or of whoever made up the address. */
const refusalText = (error: string): string =>
  error === 'access_denied' ? 'The sign-in was cancelled at ChatGPT.' : `ChatGPT rejected the sign-in: ${error}.`

const SIGNED_IN = { status: 200, title: 'Signed in', text: 'You can close this window and go back to Sluice.' }
const NOT_SIGNED_IN = { status: 400, title: 'Not signed in', text: 'Go back to Sluice to see why and start again.' }
const UNKNOWN = {
  status: 400,
  title: 'Unknown sign-in',
  text: 'This URL belongs to no sign-in of this Sluice. Start a new one in the dashboard.',
}
