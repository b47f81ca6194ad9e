/** What a command works with: where it writes, the environment it was given, and the data folder while it runs. */
import { existsSync } from 'node:fs'
import { setPriority } from 'node:os'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { type Config, readConfig } from '../env.ts'
import { systemClock } from '../lib/clock.ts'
import { escapeControls } from '../lib/controls.ts'
import { systemRandom } from '../lib/random.ts'
import type { Actor } from '../model/audit.ts'
import { placesOf } from '../ops/places.ts'
import { asFolderError, type Folder, openFolder } from './open-folder.ts'

export interface CliIo {
  environment: Record<string, string | undefined>
  stdout: (text: string) => void
  stderr: (text: string) => void
  /** For what asks the network. */
  fetch: typeof globalThis.fetch
}

/** Runs with the arguments behind its name; returns the exit code. */
export type Command = (args: readonly string[], io: CliIo) => number | Promise<number>

/** The command was not understood: exit code 2 and a hint. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Opens the folder for the length of `run`; a running server notices what was written within two seconds. */
export const withFolder = async <T>(io: CliIo, run: (folder: Folder) => T | Promise<T>): Promise<T> => {
  const config = configOf(io)
  const { databasePath } = placesOf(config)
  const isNew = !existsSync(databasePath)
  const folder = openFolder(config, { clock: systemClock, random: systemRandom })
  // A service may have CODEX_LB_DATA_DIR where this shell does not: then this is not its database.
  if (isNew) io.stderr(`There was no database yet; ${databasePath} was made.\n`)
  try {
    return await run(folder)
  } catch (err) {
    throw asFolderError(err, folder.databasePath)
  } finally {
    folder.close()
  }
}

export const configOf = (io: CliIo): Config => readConfig(io.environment)

/** Reading the whole database through must not slow down who serves from it. */
export const yieldToTurns = (): void => {
  try {
    setPriority(10)
  } catch {
    // not allowed here: then at the usual priority
  }
}

/** Who the audit log names. */
export const cliActor = (): Actor => ({ id: 'cli', method: 'cli', address: null, at: systemClock.now() })

/** `parseArgs`, whose refusals become a `UsageError`. */
export const readArgs = <const Options extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: Options,
) => {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true })
  } catch (cause) {
    const [reason] = (cause instanceof Error ? cause.message : String(cause)).split('. ')
    throw new UsageError(`${reason}.`, { cause })
  }
}

/** The only argument a command takes. Throws `UsageError` for none or several. */
export const onlyArgument = (positionals: readonly string[], what: string): string => {
  const [value, ...rest] = positionals
  if (value === undefined || rest.length > 0) throw new UsageError(`Name exactly one ${what}.`)
  return value
}

/** Throws `UsageError` for a command that takes none. */
export const noArguments = (positionals: readonly string[]): void => {
  if (positionals.length > 0) throw new UsageError(`"${positionals[0]}" is not expected here.`)
}

/** Its own line breaks are all that is left as it is: the output leaves out what else drives a terminal. */
export const printJson = (io: CliIo, value: unknown): void =>
  io.stdout(`${JSON.stringify(value, null, 2).split('\n').map(escapeControls).join('\n')}\n`)

/** Looks the next word up among the sub-commands of `name`. */
export const dispatch =
  (name: string, commands: Readonly<Record<string, Command>>): Command =>
  (args, io) => {
    const [word = '', ...rest] = args
    const command = Object.hasOwn(commands, word) ? commands[word] : undefined
    if (command) return command(rest, io)
    const choices = Object.keys(commands).join(', ')
    throw new UsageError(
      word === '' ? `sluice ${name} needs one of: ${choices}.` : `sluice ${name} has no "${word}"; it has ${choices}.`,
    )
  }
