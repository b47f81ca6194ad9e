/** Exchanges sign-in codes for accounts: each code once, and the result is stored with retries. */
import { commit, type Db } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Random } from '../lib/random.ts'
import type { Sealer } from '../lib/seal.ts'
import {
  getAccessIdentity,
  getIdentity,
  type ImportedAccount,
  JUST_GIVEN,
  unusableField,
} from '../model/accounts/auth-json.ts'
import { completeFlow, type FlowRow, failFlow } from '../model/accounts/oauth-flows.ts'
import type { Actor } from '../model/audit/audit.ts'
import type { Route } from '../model/egress/route.ts'
import { findPerson } from '../model/users/people.ts'
import {
  type CodeGrant,
  exchangeCode,
  type OAuthCall,
  type OAuthContext,
  RefreshError,
  refreshTokens,
  SignInError,
} from './oauth.ts'

/** Pauses before each attempt to store the result. */
const STORE_PAUSES_MS = [0, 250, 1000, 4000]

export interface CodeExchangesDeps {
  db: Db
  sealer: Sealer
  clock: Clock
  random: Random
  log: Log
  oauth: OAuthContext
  getRoute: RouteOfSignIn
}

/** The route of a sign-in. */
export type RouteOfSignIn = (flow: Pick<FlowRow, 'accountId' | 'egressPoolId'>) => Promise<Route>

export class CodeExchanges {
  readonly #deps: CodeExchangesDeps & { onEnd: () => Promise<unknown> }
  /** By flow id. */
  readonly #running = new Map<string, Promise<void>>()

  constructor(deps: CodeExchangesDeps & { onEnd: () => Promise<unknown> }) {
    this.#deps = deps
  }

  /** Ids of flows whose exchange is running. */
  get ids(): string[] {
    return [...this.#running.keys()]
  }

  /** The promise of a running exchange. */
  of(id: string): Promise<void> | undefined {
    return this.#running.get(id)
  }

  /** The first call starts the exchange; others wait for its result. */
  once(flow: FlowRow, grant: CodeGrant, address: string | null): Promise<void> {
    const running = this.#running.get(flow.id)
    if (running !== undefined) return running
    const exchange = this.#exchangeOnce(flow, grant, address)
    this.#running.set(flow.id, exchange)
    return exchange
  }

  async #exchangeOnce(flow: FlowRow, grant: CodeGrant, address: string | null): Promise<void> {
    try {
      await this.#exchange(flow, grant, address)
    } finally {
      this.#running.delete(flow.id)
      await this.#deps.onEnd()
    }
  }

  async #exchange(flow: FlowRow, grant: CodeGrant, address: string | null): Promise<void> {
    const { db, oauth, getRoute } = this.#deps
    try {
      await this.#store(flow, await signedInAccount({ ...oauth, route: await getRoute(flow) }, grant), address)
    } catch (err) {
      if (!(err instanceof SignInError)) throw err
      await commit(db, async (tx) => failFlow(tx, flow, err.message, await getActor(this.#deps, flow, address)))
    }
  }

  /** Retries, because a code works only once. Throws `SignInError`, and `oauth_flow_not_found` immediately. */
  async #store(flow: FlowRow, imported: ImportedAccount, address: string | null): Promise<void> {
    const { db, clock, log, sealer, random } = this.#deps
    for (const pauseMs of STORE_PAUSES_MS) {
      if (pauseMs > 0) await clock.sleep(pauseMs)
      try {
        const doing = { sealer, random, actor: await getActor(this.#deps, flow, address) }
        await commit(db, (tx) => completeFlow(tx, flow.id, imported, doing))
        return
      } catch (err) {
        if (err instanceof AppError) throw err
        log.error('a signed-in account could not be stored yet', { flow: flow.id, err })
      }
    }
    throw new SignInError('The account could not be stored. Check the log of Sluice, then start again.')
  }

  /** Resolves when all running exchanges have ended, successfully or not. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running.values())
  }
}

/** Exchanges the code, which works once, for the account. Throws `SignInError`. */
export const signedInAccount = async (oauth: OAuthCall, grant: CodeGrant): Promise<ImportedAccount> => {
  const tokens = await exchangeCode(oauth, grant)
  const identity = getIdentity(tokens.idToken)
  if (identity === null) throw new SignInError('OpenAI did not say who signed in.')
  const unusable = unusableField({ identity, tokens })
  if (unusable) throw new SignInError(`ChatGPT sent an account that Sluice can't use: ${unusable}.`)
  return { identity, tokens, lastRefreshAt: JUST_GIVEN }
}

/**
 * Exchanges a refresh token of another program for the account. The token cannot be used again. Throws `RefreshError`.
 */
export const accountOfRefreshToken = async (oauth: OAuthCall, refreshToken: string): Promise<ImportedAccount> => {
  const tokens = await refreshTokens(oauth, { accessToken: '', refreshToken, idToken: '' })
  const identity = tokens.idToken ? getIdentity(tokens.idToken) : getAccessIdentity(tokens.accessToken, {})
  if (identity === null) throw new RefreshError('OpenAI did not return the account of this token.', null)
  const unusable = unusableField({ identity, tokens })
  if (unusable) throw new RefreshError(`ChatGPT sent an account that Sluice can't use: ${unusable}.`, null)
  return { identity, tokens, lastRefreshAt: JUST_GIVEN }
}

/** A callback has no session, so the actor is the user who started the sign-in. */
export const getActor = async (
  { db, clock }: Pick<CodeExchangesDeps, 'db' | 'clock'>,
  { createdBy }: FlowRow,
  address: string | null,
): Promise<Actor> => {
  const person = await findPerson(db, createdBy)
  return {
    id: createdBy,
    name: person?.row.username ?? null,
    role: person?.role.slug ?? null,
    method: 'oauth',
    address,
    at: clock.now(),
  }
}
