/**
 * Sign-ins that add or renew an account: started in the dashboard, completed by a callback, a pasted URL or a polled
 * device. Each code is exchanged once; the rows decide what is polled and whether the port listens.
 */
import { commit } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import { getQueue } from '../lib/lanes.ts'
import { getAccount } from '../model/accounts/accounts.ts'
import {
  beginFlow,
  cancelFlow,
  expireFlows,
  type FlowRow,
  failFlow,
  flowAt,
  flowOfState,
  getFlow,
  getFlowOf,
  getLatestFlow,
  type NewFlow,
  pendingFlows,
} from '../model/accounts/oauth-flows.ts'
import type { Actor } from '../model/audit/audit.ts'
import { getPool } from '../model/egress/pools.ts'
import { noRoute, type Route } from '../model/egress/route.ts'
import { type CallbackAnswer, CallbackListener } from './callback-listener.ts'
import { CodeExchanges, type CodeExchangesDeps, getActor } from './code-exchanges.ts'
import { DevicePolls } from './device-polls.ts'
import { type FlowBase, getBrowserSecret, newBrowserFlow, newDeviceFlow } from './flow-secrets.ts'
import { authorizationUrl, callbackUrl, readCallback } from './oauth-browser.ts'
import { requestDeviceCode, verificationUrl } from './oauth-device.ts'

/** More than there are flows at a time. */
const MAX_HOMES = 32

interface SignInsDeps extends CodeExchangesDeps {
  callback: { host: string; port: number }
}

interface Beginning {
  method: FlowRow['method']
  /** The account to sign in again; null adds a new one. */
  accountId: string | null
  /** The pool of outbound proxies for a new account; null: as the settings say. */
  egressPoolId: string | null
  actor: Actor
  /** Origin of the dashboard, where the browser returns. */
  home: string
}

/** What the user needs to sign in; null for flows that ended or are of the other kind. */
interface Offer {
  authorizationUrl: string | null
  verificationUrl: string | null
}

export class SignIns {
  readonly #deps: SignInsDeps
  readonly #listener: CallbackListener
  readonly #polls: DevicePolls
  readonly #exchanges: CodeExchanges
  /** Where each flow's browser returns; in memory only. */
  readonly #homes = new Map<string, string>()
  /** `follow` runs one at a time, so that an older read never decides last. */
  readonly #inTurn = getQueue(1)
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

  /** Whether callbacks reach the local port. */
  get isListening(): boolean {
    return this.#listener.isOpen
  }

  /** The redirect URL of every browser flow. */
  get callbackUrl(): string {
    return callbackUrl(this.#deps.callback.port)
  }

  /** Throws `account_not_found`, `proxy_pool_not_found`, `egress_unavailable`, and for a device what `requestDeviceCode` does. */
  async begin({ method, accountId, egressPoolId, actor, home }: Beginning): Promise<FlowRow> {
    const { db, clock, random, getRoute } = this.#deps
    if (accountId !== null) await getAccount(db, accountId)
    else if (egressPoolId !== null) await getPool(db, egressPoolId)
    const ofNew = accountId === null ? egressPoolId : null
    const route = await getRoute({ accountId, egressPoolId: ofNew })
    if (route.kind === 'closed') throw noRoute(route.reason) // before the user signs in for nothing
    const flow = await this.#newFlow({ id: random.id('flow'), method, accountId, egressPoolId: ofNew }, route)
    const at = clock.now()
    const row = await commit(db, async (tx) => {
      await expireFlows(tx, at, this.#exchanges.ids)
      return beginFlow(tx, flow, { ...actor, at })
    })
    this.#homes.set(row.id, home)
    for (const oldest of this.#homes.keys()) if (this.#homes.size > MAX_HOMES) this.#homes.delete(oldest)
    await this.follow()
    return row
  }

  async #newFlow(base: FlowBase, route: Route): Promise<NewFlow> {
    const { oauth, sealer, random, clock } = this.#deps
    const now = clock.now()
    return base.method === 'device'
      ? newDeviceFlow(base, await requestDeviceCode({ ...oauth, route }, now), sealer)
      : newBrowserFlow(base, { sealer, random, now })
  }

  /**
   * The current state; without an id, that of the user's latest flow. Throws `oauth_flow_not_found`, also for other
   * users' flows.
   */
  async status(who: string, id: string | null): Promise<FlowRow> {
    const { db } = this.#deps
    return this.#asOfNow(id === null ? await getLatestFlow(db, who) : await getFlowOf(db, who, id))
  }

  /** The user's newest pending sign-in with this method for this account (null: a new account), or null. */
  async pending({
    who,
    method,
    accountId,
  }: Pick<FlowRow, 'method' | 'accountId'> & { who: string }): Promise<FlowRow | null> {
    const { db, clock } = this.#deps
    const now = clock.now()
    const isIt = (flow: FlowRow) =>
      flow.createdBy === who && flow.method === method && flow.accountId === accountId && flow.expiresAt > now
    return (await pendingFlows(db)).findLast(isIt) ?? null
  }

  #asOfNow(row: FlowRow): FlowRow {
    return this.#exchanges.of(row.id) !== undefined ? row : flowAt(row, this.#deps.clock.now())
  }

  getOffer(flow: FlowRow): Offer {
    const { oauth, sealer } = this.#deps
    if (flow.status !== 'pending') return { authorizationUrl: null, verificationUrl: null }
    return flow.method === 'device'
      ? { authorizationUrl: null, verificationUrl: verificationUrl(oauth.authBaseUrl) }
      : {
          authorizationUrl: authorizationUrl(oauth.authBaseUrl, getBrowserSecret(flow, sealer), this.callbackUrl),
          verificationUrl: null,
        }
  }

  /**
   * Processes a callback URL. Has no effect on an ended flow; concurrent calls get the first one's result. `who` is
   * null for a browser without session. Throws `invalid_callback` for a URL of no sign-in, of another one, or of
   * another user.
   */
  async receive(
    address: string,
    from: { who: string | null; flowId: string | null; address: string | null },
  ): Promise<FlowRow> {
    const { db, clock } = this.#deps
    const said = readCallback(address)
    if (said === null) throw new AppError('invalid_callback', { param: 'callbackUrl' })
    const flow = await flowOfState(db, said.state)
    const isOther = from.flowId !== null && from.flowId !== flow.id
    if (isOther || (from.who !== null && from.who !== flow.createdBy))
      throw new AppError('invalid_callback', { param: 'callbackUrl' })
    const isOver = flowAt(flow, clock.now()).status !== 'pending' && !this.#exchanges.of(flow.id)
    if (!isOver) await this.#end(flow, said, from.address)
    return this.#asOfNow(await getFlow(db, flow.id))
  }

  async #end(flow: FlowRow, said: NonNullable<ReturnType<typeof readCallback>>, address: string | null): Promise<void> {
    if (said.kind === 'refused') {
      return this.#exchanges.of(flow.id) ?? (await this.#fail(flow, refusalText(said.error), address))
    }
    const { verifier } = getBrowserSecret(flow, this.#deps.sealer)
    return this.#exchanges.once(flow, { code: said.code, verifier, redirectUri: this.callbackUrl }, address)
  }

  /**
   * Ends a pending sign-in: its URL and code stop working, and the port is freed immediately for other programs. An
   * ended flow stays unchanged. Throws `oauth_flow_not_found`, also for other users' flows.
   */
  async cancel(id: string, actor: Actor): Promise<FlowRow> {
    const { db } = this.#deps
    await commit(db, (tx) => cancelFlow(tx, id, actor))
    await this.follow()
    this.#listener.closeIfUnused()
    return this.status(actor.id, id)
  }

  /** Polls and listens for exactly the pending flows. Call after every change, and at start. */
  follow(): Promise<void> {
    return this.#inTurn(() => this.#follow())
  }

  async #follow(): Promise<void> {
    if (this.#isStopped) return
    const { db, clock } = this.#deps
    const now = clock.now()
    const isOver = ({ id, expiresAt }: FlowRow) => expiresAt <= now && !this.#exchanges.of(id)
    if ((await pendingFlows(db)).some(isOver)) await this.#expire(now)
    const pending = await pendingFlows(db)
    if (this.#isStopped) return // in the meantime
    const running = pending.filter((flow) => !isOver(flow))
    this.#polls.follow(running.filter(({ method }) => method === 'device'))
    if (running.some(({ method }) => method === 'browser')) this.#listener.open()
    else this.#listener.closeSoon()
    this.#cancelExpiry()
    const next = Math.min(...pending.map(({ expiresAt }) => expiresAt))
    this.#cancelExpiry = Number.isFinite(next) ? clock.after(Math.max(1000, next - now), () => this.follow()) : () => {}
  }

  /** If it fails, the flows stay pending and are expired a second later. */
  async #expire(now: number): Promise<void> {
    const { db, log } = this.#deps
    try {
      await commit(db, (tx) => expireFlows(tx, now, this.#exchanges.ids))
    } catch (err) {
      log.warn('could not store expired sign-ins', { err })
    }
  }

  /** Leaves polling and the port to the process that runs the jobs. */
  suspend(): void {
    this.#isStopped = true
  }

  /** This process runs the jobs now. */
  async resume(): Promise<void> {
    this.#isStopped = false
    await this.follow()
  }

  /** Stops waiting; running exchanges are completed. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelExpiry()
    this.#polls.follow([])
    await this.#exchanges.settled()
    await this.#inTurn(async () => {}) // nothing is read any more
    this.#listener.close()
  }

  async #fail(flow: FlowRow, message: string, address: string | null): Promise<void> {
    await commit(this.#deps.db, async (tx) => failFlow(tx, flow, message, await getActor(this.#deps, flow, address)))
    await this.follow()
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

/** `error` is a code from OpenAI, or from someone who made up the URL. */
const refusalText = (error: string): string =>
  error === 'access_denied' ? 'The sign-in was cancelled at ChatGPT.' : `ChatGPT rejected the sign-in: ${error}.`

const SIGNED_IN = { status: 200, title: 'Signed in', text: 'You can close this window and go back to Sluice.' }
const NOT_SIGNED_IN = { status: 400, title: 'Not signed in', text: 'Go back to Sluice to see why and start again.' }
const UNKNOWN = {
  status: 400,
  title: 'Unknown sign-in',
  text: 'This URL belongs to no sign-in of this Sluice. Start a new one in the dashboard.',
}
