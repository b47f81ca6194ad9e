/** The command line except `serve`. Works directly on the database, also while the server runs. */
import { isBusy } from '../../db/busy.ts'
import { ConfigError } from '../boot/env.ts'
import { AppError } from '../errors.ts'
import { type CliIo, UsageError } from './command.ts'
import { type CommandSpec, getName } from './command-spec.ts'
import { COMMANDS } from './commands.ts'
import { FolderError } from './private-folder.ts'
import { CommanderError, createProgram, getExitCode } from './program.ts'

/** Runs one command and returns its exit code: 0 done, 1 rejected or failed, 2 invalid usage. Never throws. */
export const runCli = async (argv: readonly string[], io: CliIo): Promise<number> => {
  let exitCode = 0
  const program = createProgram(io, async (spec, args, options) => {
    const run = await spec.run?.()
    exitCode = (await run?.(io, args, options as never)) ?? 0 // as: commander parsed them as this command declares
  })
  const path = commandPath(argv)
  try {
    await program.parseAsync(helpRequest(argv), { from: 'user' })
    return exitCode
  } catch (err) {
    if (err instanceof CommanderError) {
      exitCode = getExitCode(err)
      if (exitCode !== 0 && err.code !== 'commander.help') io.stderr(hintFor(path))
      return exitCode
    }
    io.stderr(`sluice: ${explain(err)}\n`)
    if (err instanceof UsageError) io.stderr(hintFor(path))
    return err instanceof UsageError ? 2 : 1
  }
}

/** No command, or `help COMMAND`, asks for help. */
const helpRequest = (argv: readonly string[]): string[] => {
  const [word, ...rest] = argv
  if (word === undefined) return ['--help']
  if (word !== 'help') return [...argv]
  // An unknown name without `--help`, so that it is reported.
  return commandPath(rest).length === rest.length ? [...rest, '--help'] : rest
}

/** The command names at the beginning of `argv`. */
const commandPath = (argv: readonly string[]): string[] => {
  const path: string[] = []
  let level: readonly CommandSpec[] = Object.values(COMMANDS).flat()
  for (const word of argv[0] === 'help' ? argv.slice(1) : argv) {
    const spec = level.find((one) => getName(one) === word || one.alias === word)
    if (!spec) break
    path.push(word)
    level = spec.commands ?? []
  }
  return path
}

const hintFor = (path: readonly string[]): string => `Run "${['sluice help', ...path].join(' ')}" for help.\n`

const explain = (err: unknown): string => {
  if (err instanceof AppError) return [err.message, ...getFields(err)].join('\n  ')
  if (err instanceof UsageError || err instanceof ConfigError || err instanceof FolderError) return err.message
  if (isBusy(err)) return 'The database is busy with a long write. Try again in a moment.'
  return err instanceof Error ? err.message : String(err)
}

/** One line per rejected field. */
const getFields = ({ extra }: AppError): string[] =>
  Object.entries(extra.details?.fields ?? {}).map(([name, messages]) => `${name}: ${[messages].flat().join(' ')}`)
