/** The command line: everything but `serve`. It works on the database directly, also beside a running server. */
import { isBusy } from '../../db/lock.ts'
import { ConfigError } from '../env.ts'
import { AppError } from '../errors.ts'
import { VERSION } from '../version.ts'
import { accounts } from './accounts.ts'
import { audit } from './audit.ts'
import { backup } from './backup.ts'
import { bootstrapToken } from './bootstrap.ts'
import { type CliIo, type Command, UsageError } from './command.ts'
import { doctor } from './doctor.ts'
import { healthcheck } from './healthcheck.ts'
import { HELP } from './help.ts'
import { keys } from './keys.ts'
import { FolderError } from './open-folder.ts'
import { restore } from './restore.ts'
import { service } from './service.ts'
import { settings } from './settings.ts'
import { user } from './users.ts'

const print =
  (text: string): Command =>
  (_args, io) => {
    io.stdout(text)
    return 0
  }

const help = print(HELP)
const version = print(`${VERSION}\n`)

const COMMANDS: Readonly<Record<string, Command>> = {
  accounts,
  keys,
  settings,
  user,
  'bootstrap-token': bootstrapToken,
  audit,
  backup,
  restore,
  doctor,
  service,
  healthcheck,
  help,
  '--help': help,
  '-h': help,
  version,
  '--version': version,
}

/** Runs one command and returns its exit code: 0 done, 1 refused or failed, 2 not understood. Never throws. */
export const runCli = async (argv: readonly string[], io: CliIo): Promise<number> => {
  const [word, ...args] = argv
  try {
    if (word === undefined) throw new UsageError('Name a command.')
    const command = Object.hasOwn(COMMANDS, word) ? COMMANDS[word] : undefined
    if (!command) throw new UsageError(`There is no command "${word}".`)
    return await (args.includes('--help') ? help : command)(args, io)
  } catch (err) {
    io.stderr(`sluice: ${explain(err)}\n`)
    return err instanceof UsageError ? 2 : 1
  }
}

const explain = (err: unknown): string => {
  if (err instanceof UsageError) return `${err.message}\nTry "sluice help".`
  if (err instanceof AppError) return [err.message, ...fieldsOf(err)].join('\n  ')
  if (err instanceof ConfigError || err instanceof FolderError) return err.message
  if (isBusy(err)) return 'The database is busy with a long write; try again in a moment.'
  return err instanceof Error ? err.message : String(err)
}

/** One line a field that was refused. */
const fieldsOf = ({ extra }: AppError): string[] =>
  Object.entries(extra.details?.fields ?? {}).map(([name, messages]) => `${name}: ${[messages].flat().join(' ')}`)
