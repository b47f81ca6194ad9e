/** `sluice bootstrap-token`: the token with which the first password is set from another machine. */
import { commit, type Db } from '../../db/commit.ts'
import type { Config } from '../env.ts'
import { AppError } from '../errors.ts'
import { systemRandom } from '../lib/random.ts'
import { hasBootstrapToken, rotateBootstrapToken } from '../model/bootstrap-token.ts'
import { hasPasswordAccount } from '../model/people.ts'
import { type Command, cliActor, configOf, noArguments, readArgs, withFolder } from './command.ts'

/** A token is stored hashed and cannot be shown again, so without `--rotate` this only says whether there is one. */
export const bootstrapToken: Command = (args, io) => {
  const { values, positionals } = readArgs(args, { rotate: { type: 'boolean' } })
  noArguments(positionals)
  return withFolder(io, ({ db }) => {
    const { DASHBOARD_AUTH_MODE: mode, DASHBOARD_BOOTSTRAP_TOKEN: given } = configOf(io)
    if (!values.rotate) {
      io.stdout(standing(db, mode))
      return 0
    }
    if (hasPasswordAccount(db)) throw new AppError('password_already_configured', { message: REFUSED })
    if (mode !== 'standard') throw new AppError('bootstrap_unavailable', { message: noneIn(mode).trim() })
    io.stdout(`${commit(db, (tx) => rotateBootstrapToken(tx, { random: systemRandom, actor: cliActor() }))}\n`)
    io.stderr('It is shown only now, and works once: on /setup, to set the first password.\n')
    if (given !== undefined) io.stderr('The next start replaces it by CODEX_LB_DASHBOARD_BOOTSTRAP_TOKEN.\n')
    return 0
  })
}

const standing = (db: Db, mode: Config['DASHBOARD_AUTH_MODE']): string => {
  if (hasPasswordAccount(db)) return NOT_NEEDED
  if (mode !== 'standard') return noneIn(mode)
  return hasBootstrapToken(db) ? THERE_IS_ONE : THERE_IS_NONE
}

const REFUSED = 'A password is set already; sluice user reset-password changes it.'
const noneIn = (mode: string): string =>
  `With CODEX_LB_DASHBOARD_AUTH_MODE=${mode} no bootstrap token is needed, and none is taken.\n`
const NOT_NEEDED = 'A password is set; no bootstrap token is needed.\n'
const THERE_IS_ONE = 'There is a bootstrap token. It was shown when it was made; --rotate makes a new one.\n'
const THERE_IS_NONE = 'There is no bootstrap token; --rotate makes one.\n'
