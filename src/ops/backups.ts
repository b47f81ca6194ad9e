/** Backups in the data folder: lists them, makes one in a child process, and deletes old ones. */
import { chmod, mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { removeLeftovers } from './backup-file.ts'
import { runOwnCommand } from './own-command.ts'

export interface Backup {
  name: string
  bytes: number
  /** ms since epoch, from its name. */
  at: number
  kind: BackupKind
}

/** Scheduled or manual: the two are kept and deleted separately. */
type BackupKind = 'scheduled' | 'manual'

interface BackupsDeps {
  /** The data folder. */
  dir: string
  clock: Clock
  /** Writes a backup to `target`; resolves with null, or why it failed. Must not block, because requests are running. */
  write: (target: string, signal?: AbortSignal) => Promise<string | null>
}

const FOLDER = 'backups'
/** Only files with these names are counted and deleted; others in the folder are left alone. */
const NAME = /^sluice-(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)(-manual)?\.db$/
/** Minimum time between manual backups. */
const PAUSE_MS = 60_000

/** The backup folder of data folder `dir`. */
export const backupFolder = (dir: string): string => join(dir, FOLDER)

/** The default path of a backup made at `at` (ms since epoch). */
export const backupPath = (dir: string, at: number, kind: BackupKind): string => {
  const stamp = new Date(at).toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')
  return join(backupFolder(dir), `sluice-${stamp}${kind === 'manual' ? '-manual' : ''}.db`)
}

/** Created if missing, accessible only to its owner. */
export const makeBackupFolder = async (dir: string): Promise<void> => {
  await mkdir(backupFolder(dir), { recursive: true, mode: 0o700 })
  await chmod(backupFolder(dir), 0o700)
}

/** Runs `sluice backup` in a child process, because copying a large database blocks for seconds. */
export const writeInChild =
  (environment: Readonly<Record<string, string | undefined>>): BackupsDeps['write'] =>
  (target, signal) =>
    runOwnCommand(['backup', '--out', target], { environment, ...(signal && { signal }) })

export class Backups {
  readonly #deps: BackupsDeps
  #making: Promise<Backup> | null = null
  #newestAt: number | null = null
  #failure: string | null = null

  constructor(deps: BackupsDeps) {
    this.#deps = deps
  }

  /** Time of the newest backup (ms since epoch), as of the last listing. */
  get newestAt(): number | null {
    return this.#newestAt
  }

  /** Why the last backup failed. Null if it did not, or if none was made since the server started. */
  get failure(): string | null {
    return this.#failure
  }

  /** Newest first. */
  async list(): Promise<Backup[]> {
    const folder = backupFolder(this.#deps.dir)
    const names = await readdir(folder).catch(nothingThere)
    const found = await Promise.all(names.map((name) => backupAt(folder, name)))
    const backups = found.filter((backup) => backup !== null).sort((a, b) => b.at - a.at)
    const now = this.#deps.clock.now()
    this.#newestAt = backups.find(({ at }) => at <= now)?.at ?? null
    return backups
  }

  /**
   * Concurrent calls share one backup. Throws `internal_error` with the reason, and `busy` for a manual one within a
   * minute of the last.
   */
  make(kind: BackupKind, signal?: AbortSignal): Promise<Backup> {
    this.#making ??= this.#make(kind, signal).finally(() => {
      this.#making = null
    })
    return this.#making
  }

  async #make(kind: BackupKind, signal?: AbortSignal): Promise<Backup> {
    const { dir, clock, write } = this.#deps
    if (kind === 'manual') await this.#requirePause()
    const target = backupPath(dir, clock.now(), kind)
    const problem = await prepareFolder(dir, clock.now()).then(
      () => write(target, signal),
      (err: Error) => err.message,
    )
    this.#failure = problem === null || signal?.aborted ? null : spoken(problem)
    if (problem !== null) throw new AppError('internal_error', { message: `The backup failed: ${spoken(problem)}` })
    const made = (await this.list()).find(({ name }) => target.endsWith(name))
    if (!made) throw new AppError('internal_error', { message: 'The backup failed: its file is missing.' })
    return made
  }

  async #requirePause(): Promise<void> {
    await this.list()
    const left = (this.newestAt ?? Number.NEGATIVE_INFINITY) + PAUSE_MS - this.#deps.clock.now()
    if (left > 0)
      throw new AppError('busy', {
        message: 'A backup was just created. Wait a minute before you create another one.',
        retryAfterSeconds: Math.ceil(left / 1000),
      })
  }

  /**
   * Deletes all but the newest `count` of each kind, with their keys. Backups dated in the future are ignored, because
   * a clock was wrong. Returns the deleted names.
   */
  async keepNewest(count: number): Promise<string[]> {
    const now = this.#deps.clock.now()
    const past = (await this.list()).filter(({ at }) => at <= now)
    const old = [...Map.groupBy(past, ({ kind }) => kind).values()].flatMap((same) => same.slice(count))
    for (const { name } of old)
      for (const path of [name, `${name}.key`]) await rm(join(backupFolder(this.#deps.dir), path), { force: true })
    return old.map(({ name }) => name)
  }

  /** Its path. Throws `not_found`, also for names outside the folder. */
  async find(name: string): Promise<string> {
    const known = (await this.list()).find((backup) => backup.name === name)
    if (!known) throw new AppError('not_found', { message: 'Backup not found. It may have been deleted.' })
    return join(backupFolder(this.#deps.dir), known.name)
  }
}

const prepareFolder = async (dir: string, now: number): Promise<void> => {
  await makeBackupFolder(dir)
  removeLeftovers(backupFolder(dir), now, (name) => NAME.test(name))
}

/** A command's stderr as the end of a sentence. */
const spoken = (said: string): string => said.replace(/^sluice: /, '').replace(/\.?$/, '.')

const nothingThere = (err: NodeJS.ErrnoException): string[] => {
  if (err.code === 'ENOENT') return []
  throw err
}

const backupAt = async (folder: string, name: string): Promise<Backup | null> => {
  const [, ...parts] = NAME.exec(name) ?? []
  const [year, month, day, hour, minute, second] = parts.slice(0, 6).map(Number)
  if (year === undefined || month === undefined) return null
  const { size } = await stat(join(folder, name)).catch(() => ({ size: null })) // removed in the meantime
  if (size === null) return null
  const kind = parts[6] === undefined ? 'scheduled' : 'manual'
  return { name, bytes: size, at: Date.UTC(year, month - 1, day, hour, minute, second), kind }
}
