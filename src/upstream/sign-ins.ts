/**
 * The sign-ins that add or renew an account: begun by somebody on the dashboard, ended by a callback, a pasted address or a
 * polled device. A code is exchanged once, whoever brings it how often; what the rows say decides what waits and listens.
 */
import { commit, type Db } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Random } from '../lib/random.ts'
import type { Sealer } from '../lib/seal.ts'
import { getAccount } from '../model/accounts.ts'
import type { Actor } from '../model/audit.ts'
import { type ImportedAccount, identityOf } from '../model/auth-json.ts'
import {
  asOf,
  beginFlow,
  cancelFlow,
  completeFlow,
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
import { findPerson } from '../model/people.ts'
import { type CallbackAnswer, CallbackListener } from './callback-listener.ts'
import { DevicePolls } from './device-polls.ts'
import { browserSecretOf, type FlowBase, newBrowserFlow, newDeviceFlow } from './flow-secrets.ts'
import { type CodeGrant, exchangeCode, type OAuthContext, SignInError } from './oauth.ts'
import { authorizationUrl, callbackUrl, readCallback } from './oauth-browser.ts'
import { requestDeviceCode, verificationUrl } from './oauth-device.ts'

/** More than there are flows at once. */
const MOST_HOMES = 32
/** Before each try to store what a code gave. */
const STORE_PAUSES_MS = [0, 250, 1000, 4000]

export interface SignInsDeps {
  db: Db
  sealer: Sealer
  clock: Clock
  random: Random
  log: Log
  oauth: OAuthContext
  callback: { host: string; port: number }
}

export interface Beginning {
  method: FlowRow['method']
  /** To be signed in again; null: whoever signs in is added. */
  accountId: string | null
  actor: Actor
  /** Origin of the dashboard, where the browser goes back to. */
  home: string
}

/** What the person needs who signs in; null where the flow has ended or is of the other kind. */
export interface Offer {
  authorizationUrl: string | null
  verificationUrl: string | null
}

export class SignIns {
  readonly #deps: SignInsDeps
  readonly #listener: CallbackListener
  readonly #polls: DevicePolls
  readonly #exchanges = new Map<string, Promise<void>>()
  /** Where the browser of a flow goes back to; forgotten with the process. */
  readonly #homes = new Map<string, string>()
  #cancelExpiry = () => {}
  #isStopped = false

  constructor(deps: SignInsDeps) {
    this.#deps = deps
    this.#listener = new CallbackListener({
      ...deps.callback,
      clock: deps.clock,
      log: deps.log,
      answer: (url, address) => this.#answer(url, address),
    })
    this.#polls = new DevicePolls({
      ...deps,
      granted: (flow, grant) => this.#exchangeOnce(flow, grant, null),
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
      expireFlows(tx, at, [...this.#exchanges.keys()])
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

  #asOfNow(row: FlowRow): FlowRow {
    return this.#exchanges.has(row.id) ? row : asOf(row, this.#deps.clock.now())
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
    const isOver = asOf(flow, clock.now()).status !== 'pending' && !this.#exchanges.has(flow.id)
    if (!isOver) await this.#end(flow, said, from.address)
    return this.#asOfNow(getFlow(db, flow.id))
  }

  async #end(flow: FlowRow, said: NonNullable<ReturnType<typeof readCallback>>, address: string | null): Promise<void> {
    if (said.kind === 'refused') {
      const running = this.#exchanges.get(flow.id)
      return running ?? this.#fail(flow, refusalText(said.error), address)
    }
    const { verifier } = browserSecretOf(flow, this.#deps.sealer)
    return this.#exchangeOnce(flow, { code: said.code, verifier, redirectUri: this.callbackUrl }, address)
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
    if (pendingFlows(db).some(({ id, expiresAt }) => expiresAt <= now && !this.#exchanges.has(id)))
      commit(db, (tx) => expireFlows(tx, now, [...this.#exchanges.keys()]))
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
    await Promise.allSettled(this.#exchanges.values())
    this.#listener.close()
  }

  /** The first one counts; the others wait for what comes of it. */
  #exchangeOnce(flow: FlowRow, grant: CodeGrant, address: string | null): Promise<void> {
    const running = this.#exchanges.get(flow.id)
    if (running) return running
    const exchange = this.#exchange(flow, grant, address).finally(() => {
      this.#exchanges.delete(flow.id)
      this.follow()
    })
    this.#exchanges.set(flow.id, exchange)
    return exchange
  }

  async #exchange(flow: FlowRow, grant: CodeGrant, address: string | null): Promise<void> {
    const { db, oauth } = this.#deps
    try {
      const tokens = await exchangeCode(oauth, grant)
      const identity = identityOf(tokens.idToken)
      if (identity === null) throw new SignInError('The identity service did not say who signed in.')
      await this.#store(flow, { identity, tokens, lastRefreshAt: null }, address)
    } catch (err) {
      if (!(err instanceof SignInError)) throw err
      commit(db, (tx) => failFlow(tx, flow, err.message, this.#actor(flow, address)))
    }
  }

  /** Several tries, because a code opens nothing twice. Throws `SignInError`, and at once what the rows refuse: `oauth_flow_not_found`. */
  async #store(flow: FlowRow, imported: ImportedAccount, address: string | null): Promise<void> {
    const { db, clock, log, sealer, random } = this.#deps
    for (const pauseMs of STORE_PAUSES_MS) {
      if (pauseMs > 0) await clock.sleep(pauseMs)
      try {
        const doing = { sealer, random, actor: this.#actor(flow, address) }
        commit(db, (tx) => completeFlow(tx, flow.id, imported, doing))
        return
      } catch (err) {
        if (err instanceof AppError) throw err
        log.error('an account that was signed in could not be stored yet', { flow: flow.id, err })
      }
    }
    throw new SignInError('The account could not be stored; the log says why. Mend that and begin again.')
  }

  #fail(flow: FlowRow, message: string, address: string | null): void {
    const who = this.#actor(flow, address)
    commit(this.#deps.db, (tx) => failFlow(tx, flow, message, who))
    this.follow()
  }

  /** A callback comes without a session: what is done is signed by whoever began. */
  #actor({ createdBy }: FlowRow, address: string | null): Actor {
    const { db, clock } = this.#deps
    const person = findPerson(db, createdBy)
    return {
      id: createdBy,
      name: person?.row.username ?? null,
      role: person?.role.slug ?? null,
      method: 'oauth',
      address,
      at: clock.now(),
    }
  }

  async #answer(url: string, address: string | null): Promise<CallbackAnswer> {
    try {
      const flow = await this.receive(url, { who: null, flowId: null, address })
      const home = this.#homes.get(flow.id)
      const page = flow.status === 'success' ? SIGNED_IN : NOT_SIGNED_IN
      return home === undefined ? page : { ...page, location: `${home}/accounts/new/browser?flow=${flow.id}` }
    } catch (err) {
      if (err instanceof AppError && (err.code === 'invalid_callback' || err.code === 'oauth_flow_not_found'))
        return NOBODY
      throw err
    }
  }
}

/** `error` is a word of the service, or of whoever made up the address. */
const refusalText = (error: string): string =>
  error === 'access_denied' ? 'The sign-in was cancelled in the browser.' : `The sign-in was refused: ${error}.`

const SIGNED_IN = { status: 200, title: 'Signed in', text: 'You can close this window and go back to Sluice.' }
const NOT_SIGNED_IN = { status: 400, title: 'Not signed in', text: 'Go back to Sluice to see why, and begin again.' }
const NOBODY = {
  status: 400,
  title: 'Nobody waits for this',
  text: 'This address belongs to no sign-in that was begun here. Begin a new one in Sluice.',
}
