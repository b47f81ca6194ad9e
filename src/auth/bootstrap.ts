/**
 * The bootstrap token: created while no password is set, shown in the log, and required to set the first password from
 * another machine.
 */
import { commit, type Tx } from '../../db/commit.ts'
import type { Bindings, Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { isLoopbackHost } from '../lib/client-ip.ts'
import {
  dropBootstrapToken,
  hasBootstrapToken,
  isBootstrapToken,
  rotateBootstrapToken,
  spendBootstrapToken,
  storeBootstrapToken,
} from '../model/users/bootstrap-token.ts'
import { hasPasswordAccount, isEmptyInstall } from '../model/users/people.ts'
import { isLocal } from './caller.ts'
import { attempt } from './secret-attempt.ts'

type Reached = Pick<Bindings, 'db' | 'env' | 'random' | 'clock' | 'log'>

/**
 * At start, while no user has a password: stores the token from the environment, or creates one and logs it. Only its
 * hash is stored, so each start without a password creates a new one. If Sluice listens on this machine only, none is
 * created: the first password is set locally, or behind a reverse proxy with `sluice bootstrap-token --rotate`. A reload
 * keeps the one that was logged.
 */
export const prepareBootstrapToken = async (reached: Reached, isReload = false): Promise<void> => {
  const { db, env, random, clock } = reached
  if (env.DASHBOARD_AUTH_MODE !== 'standard' || (await hasPasswordAccount(db))) return
  const given = env.DASHBOARD_BOOTSTRAP_TOKEN
  const actor = { id: 'system', method: null, address: null, at: clock.now() }
  if (given !== undefined) await commit(db, (tx) => storeBootstrapToken(tx, given))
  else if (!isLoopbackHost(env.HOST) && !(isReload && (await hasBootstrapToken(db))))
    showBootstrapToken(reached, await commit(db, (tx) => rotateBootstrapToken(tx, { random, actor })))
}

/** Warns at start: without authentication, anyone who reaches this address is an administrator. */
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

/** The token can be read only here. */
export const showBootstrapToken = ({ log }: Pick<Reached, 'log'>, token: string): void =>
  log.info(
    'No password is set yet. To set the first one from another machine, open /setup there and enter this bootstrap token.',
    { bootstrap: token },
  )

/** Not needed on this machine while there is no user: anyone there is the administrator anyway (spec §5). */
export const needsBootstrapToken = async (c: Ctx): Promise<boolean> => !isLocal(c) || !(await isEmptyInstall(c.env.db))

/**
 * Whether this request may set the first password: locally on an empty install, or with the token. Returns the function
 * that uses up the token, for the commit that stores the password. Throws `bootstrap_required` without a token,
 * `bootstrap_unavailable` when none exists, `invalid_bootstrap_token`, `password_rate_limited`.
 */
export const requireBootstrap = async (c: Ctx, token: string | undefined): Promise<(tx: Tx) => Promise<unknown>> => {
  const { db } = c.env
  if (!(await needsBootstrapToken(c))) return dropBootstrapToken
  if (!(await hasBootstrapToken(db))) throw new AppError('bootstrap_unavailable')
  if (!token) throw new AppError('bootstrap_required')
  await attempt(c, { limited: 'password_rate_limited', method: 'bootstrap_token', target: null }, async () => {
    if (!(await isBootstrapToken(db, token))) throw new AppError('invalid_bootstrap_token')
  })
  return async (tx) => {
    if (!(await spendBootstrapToken(tx, token))) throw new AppError('invalid_bootstrap_token')
  }
}
