/** What a command works with: where it writes, the environment it was given, and the data folder while it runs. */
import { existsSync } from 'node:fs'
import { setPriority } from 'node:os'
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
  /** For commands that use the network. */
  fetch: typeof globalThis.fetch
  /** Aborts after so many ms. */
  timeout: (ms: number) => AbortSignal
}

/** Options by their long name in camel case, as `commands.ts` declares them. */
export type Options = Readonly<Record<string, string | boolean | readonly string[] | undefined>>

/** What a command does with its arguments; returns the exit code. */
export type Run<O extends object = { json?: true }> = (
  io: CliIo,
  args: readonly string[],
  options: Readonly<O>,
) => number | Promise<number>

/** The command was not understood: exit code 2 and a hint where to find help. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Opens the folder for the length of `run`; a running server notices what was written within two seconds. */
export const withFolder = async <T>(io: CliIo, run: (folder: Folder) => T | Promise<T>): Promise<T> => {
  const config = configOf(io)
  const { databasePath } = placesOf(config)
  const isNew = !existsSync(databasePath)
  for (const conflict of config.conflicts) io.stderr(`${conflict}\n`)
  const folder = openFolder(config, { clock: systemClock, random: systemRandom })
  // The server may have SLUICE_DATA_DIR where this shell has not: then this is not its database.
  if (isNew)
    io.stderr(`Created a new database: ${databasePath}. If you expected an existing one, set SLUICE_DATA_DIR.\n`)
  try {
    return await run(folder)
  } catch (err) {
    throw asFolderError(err, folder.databasePath)
  } finally {
    folder.close()
  }
}

export const configOf = (io: CliIo): Config => readConfig(io.environment)

/** Reading a whole database must not slow down the server that uses it. */
export const yieldToTurns = (): void => {
  try {
    setPriority(10)
  } catch {
    // not allowed here: then at the usual priority
  }
}

/** Who the audit log names. */
export const cliActor = (): Actor => ({ id: 'cli', method: 'cli', address: null, at: systemClock.now() })

/** Its own line breaks are all that is left as it is: the output leaves out what else drives a terminal. */
export const printJson = (io: CliIo, value: unknown): void =>
  io.stdout(`${JSON.stringify(value, null, 2).split('\n').map(escapeControls).join('\n')}\n`)
