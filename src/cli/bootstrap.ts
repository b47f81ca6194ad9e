/** `sluice bootstrap-token`: the token for setting the first password from another machine. */
import { commit, type Db } from '../../db/commit.ts'
import type { Config } from '../boot/env.ts'
import { AppError } from '../errors.ts'
import { systemRandom } from '../lib/random.ts'
import { hasBootstrapToken, rotateBootstrapToken } from '../model/users/bootstrap-token.ts'
import { hasPasswordAccount } from '../model/users/people.ts'
import { cliActor, getConfig, type Run, withFolder, withNewFolder } from './command.ts'

/** Only the token's hash is stored, so without `--rotate` this only tells whether there is one. */
export const bootstrapToken: Run<{ rotate?: true }> = (io, _args, { rotate }) =>
  (rotate ? withNewFolder : withFolder)(io, async ({ db }) => {
    const { DASHBOARD_AUTH_MODE: mode, DASHBOARD_BOOTSTRAP_TOKEN: given } = getConfig(io)
    if (!rotate) {
      io.stdout(`${await tokenState(db, mode)}\n`)
      return 0
    }
    if (await hasPasswordAccount(db)) throw new AppError('password_already_configured', { message: ALREADY_SET })
    if (mode !== 'standard') throw new AppError('bootstrap_unavailable', { message: notUsedIn(mode) })
    io.stdout(`${await commit(db, (tx) => rotateBootstrapToken(tx, { random: systemRandom, actor: cliActor() }))}\n`)
    io.stderr(
      'Open /setup in the dashboard and enter it to set the first password. It works once. You cannot see it again.\n',
    )
    if (given !== undefined) io.stderr('The next start replaces it with SLUICE_DASHBOARD_BOOTSTRAP_TOKEN.\n')
    return 0
  })

const tokenState = async (db: Db, mode: Config['DASHBOARD_AUTH_MODE']): Promise<string> => {
  if (await hasPasswordAccount(db)) return NOT_NEEDED
  if (mode !== 'standard') return notUsedIn(mode)
  return (await hasBootstrapToken(db)) ? EXISTS : MISSING
}

const ALREADY_SET = 'A password is already set. Use "sluice user reset-password" to change it.'
const notUsedIn = (mode: string): string => `With SLUICE_DASHBOARD_AUTH_MODE=${mode} no bootstrap token is used.`
const NOT_NEEDED = 'A password is set, so no bootstrap token is needed.'
const EXISTS = 'There is a bootstrap token, but Sluice stores only its hash. To create a new one, add --rotate.'
const MISSING = 'There is no bootstrap token. To create one, add --rotate.'
