/** The environment of a command: output, environment variables, and the data folder while it runs. */
import { existsSync } from 'node:fs'
import { setPriority } from 'node:os'
import { type Config, readConfig } from '../boot/env.ts'
import { systemClock } from '../lib/clock.ts'
import { escapeControls } from '../lib/controls.ts'
import { systemRandom } from '../lib/random.ts'
import type { Actor } from '../model/audit/audit.ts'
import { getFolderPaths } from '../ops/folder-paths.ts'
import { getUserCommand } from '../ops/own-command.ts'
import { asFolderError, type Folder, openFolder } from './open-folder.ts'
import { FolderError } from './private-folder.ts'

export interface CliIo {
  environment: Record<string, string | undefined>
  stdout: (text: string) => void
  stderr: (text: string) => void
  /** For commands that use the network. */
  fetch: typeof globalThis.fetch
  /** Aborts after this many ms. */
  timeout: (ms: number) => AbortSignal
}

/** Options by long name in camel case, as declared in `commands.ts`. */
export type Options = Readonly<Record<string, string | boolean | readonly string[] | undefined>>

/** Runs a command with its arguments; returns the exit code. */
export type Run<O extends object = { json?: true }> = (
  io: CliIo,
  args: readonly string[],
  options: Readonly<O>,
) => number | Promise<number>

/** Invalid usage: exit code 2 and a hint where to find help. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Opens the folder while `run` runs; a running server notices writes within two seconds. Throws without a database. */
export const withFolder = async <T>(io: CliIo, run: (folder: Folder) => T | Promise<T>): Promise<T> => {
  const config = getConfig(io)
  const { dir, databasePath, databaseUrl } = getFolderPaths(config)
  if (databaseUrl !== null || existsSync(databasePath)) return opened(io, config, run)
  throw new FolderError(
    `There is no database in ${dir} yet. To create one, start the server: ${getUserCommand()} serve\n` +
      'If your data is in another folder, set SLUICE_DATA_DIR.',
  )
}

/** `withFolder` for commands that can be the first: creates the database if missing. */
export const withNewFolder = async <T>(io: CliIo, run: (folder: Folder) => T | Promise<T>): Promise<T> => {
  const config = getConfig(io)
  const { databasePath, databaseUrl } = getFolderPaths(config)
  const isNew = databaseUrl === null && !existsSync(databasePath)
  return opened(io, config, (folder) => {
    // The server may have SLUICE_DATA_DIR set and this shell not: then this is another database.
    if (isNew)
      io.stderr(`Created a new database: ${databasePath}. If you expected an existing one, set SLUICE_DATA_DIR.\n`)
    return run(folder)
  })
}

const opened = async <T>(io: CliIo, config: Config, run: (folder: Folder) => T | Promise<T>): Promise<T> => {
  for (const conflict of config.conflicts) io.stderr(`${conflict}\n`)
  const folder = await openFolder(config, { clock: systemClock, random: systemRandom })
  try {
    return await run(folder)
  } catch (err) {
    throw asFolderError(err, folder.databasePath)
  } finally {
    await folder.close()
  }
}

export const getConfig = (io: CliIo): Config => readConfig(io.environment)

/** Lowers the priority, so that reading a whole database does not slow down the server. */
export const yieldToTurns = (): void => {
  try {
    setPriority(10)
  } catch {
    // not permitted: keep the usual priority
  }
}

/** The actor for the audit log. */
export const cliActor = (): Actor => ({ id: 'cli', method: 'cli', address: null, at: systemClock.now() })

/** Keeps only its own line breaks: the output removes other control characters. */
export const printJson = (io: CliIo, value: unknown): void =>
  io.stdout(`${JSON.stringify(value, null, 2).split('\n').map(escapeControls).join('\n')}\n`)
