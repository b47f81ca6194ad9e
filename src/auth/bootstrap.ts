/** The bootstrap token: created while no password is set, shown in the log, needed to set the first one from another machine. */
import { commit, type Tx } from '../../db/commit.ts'
import type { Bindings, Ctx } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { isLoopbackHost } from '../lib/client-ip.ts'
import {
  dropBootstrapToken,
  hasBootstrapToken,
  isBootstrapToken,
  rotateBootstrapToken,
  spendBootstrapToken,
  storeBootstrapToken,
} from '../model/bootstrap-token.ts'
import { hasPasswordAccount, isEmptyInstall } from '../model/people.ts'
import { attempt } from './attempt.ts'
import { isLocal } from './caller.ts'

type Reached = Pick<Bindings, 'db' | 'env' | 'random' | 'clock' | 'log'>

/**
 * At the start, while no user has a password: stores the token of the environment, or creates one and shows it in the log.
 * Only its hash is stored, so each start without a password shows another one. Where Sluice listens on this machine only
 * nothing is created: the first password is set here, and behind a reverse proxy with `sluice bootstrap-token --rotate`.
 */
export const prepareBootstrapToken = (reached: Reached): void => {
  const { db, env, random, clock } = reached
  if (env.DASHBOARD_AUTH_MODE !== 'standard' || hasPasswordAccount(db)) return
  const given = env.DASHBOARD_BOOTSTRAP_TOKEN
  const actor = { id: 'system', method: null, address: null, at: clock.now() }
  if (given !== undefined) commit(db, (tx) => storeBootstrapToken(tx, given))
  else if (!isLoopbackHost(env.HOST))
    showBootstrapToken(
      reached,
      commit(db, (tx) => rotateBootstrapToken(tx, { random, actor })),
    )
}

/** At start: without authentication whoever reaches this address is the administrator. */
export const warnOfOpenDashboard = ({ env, log }: Pick<Reached, 'env' | 'log'>): void => {
  if (env.DASHBOARD_AUTH_MODE === 'disabled')
    log.warn('sign-in is turned off: anyone who can reach the dashboard is an administrator', {
      hosts: [
        'addresses, one-part names',
        ...(env.PUBLIC_URL ? [env.PUBLIC_URL] : []),
        ...(env.FIREWALL_TRUST_PROXY_HEADERS ? ['names that trusted proxies forward'] : []),
      ].join(', '),
    })
}

/** The only time the token can be read. */
export const showBootstrapToken = ({ log }: Pick<Reached, 'log'>, token: string): void =>
  log.info(
    'No password is set yet. To set the first one from another machine, open /setup there and enter this bootstrap token.',
    { bootstrap: token },
  )

/** Not on this machine, while nobody has an account: then whoever is there is the administrator anyway (spec §5). */
export const asksBootstrapToken = (c: Ctx): boolean => !isLocal(c) || !isEmptyInstall(c.env.db)

/**
 * Whether this request may set the first password: somebody on this machine of an empty install, and who has the token.
 * Returns what uses the token up, for the commit that stores the password. Throws `bootstrap_required` without a token,
 * `bootstrap_unavailable` when there is none to give, `invalid_bootstrap_token`, `password_rate_limited`.
 */
export const demandBootstrap = async (c: Ctx, token: string | undefined): Promise<(tx: Tx) => void> => {
  const { db } = c.env
  if (!asksBootstrapToken(c)) return dropBootstrapToken
  if (!hasBootstrapToken(db)) throw new AppError('bootstrap_unavailable')
  if (!token) throw new AppError('bootstrap_required')
  await attempt(c, { limited: 'password_rate_limited', method: 'bootstrap_token', target: null }, () => {
    if (!isBootstrapToken(db, token)) throw new AppError('invalid_bootstrap_token')
  })
  return (tx) => {
    if (!spendBootstrapToken(tx, token)) throw new AppError('invalid_bootstrap_token')
  }
}
