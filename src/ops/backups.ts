/** The backups in the data folder: which there are, making one in a process of its own, and keeping the newest few. */
import { chmod, mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { runOwnCommand } from './own-command.ts'

export interface Backup {
  name: string
  bytes: number
  /** ms since epoch, as its name says. */
  at: number
}

export interface BackupsDeps {
  /** The data folder. */
  dir: string
  clock: Clock
  /** Writes a backup to `target`; null, or why it failed. Must not block: it runs beside turns. */
  write: (target: string, signal?: AbortSignal) => Promise<string | null>
}

const FOLDER = 'backups'
/** Only what is called like this is counted and removed here: other files in the folder are somebody's own. */
const NAME = /^sluice-(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)\.db$/

/** Where a backup made at `at` (ms since epoch) goes unless told otherwise. */
export const backupPath = (dir: string, at: number): string => {
  const stamp = new Date(at).toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')
  return join(dir, FOLDER, `sluice-${stamp}.db`)
}

/** Made when missing, for its owner only. */
export const makeBackupFolder = async (dir: string): Promise<void> => {
  await mkdir(join(dir, FOLDER), { recursive: true, mode: 0o700 })
  await chmod(join(dir, FOLDER), 0o700)
}

/** `sluice backup` as a child: copying a large database holds its process for seconds. */
export const writeInChild =
  (environment: Readonly<Record<string, string | undefined>>): BackupsDeps['write'] =>
  (target, signal) =>
    runOwnCommand(['backup', '--out', target], { environment, ...(signal && { signal }) })

export class Backups {
  readonly #deps: BackupsDeps
  #making: Promise<Backup> | null = null
  #newestAt: number | null = null

  constructor(deps: BackupsDeps) {
    this.#deps = deps
  }

  /** When the newest was made, as of the last look into the folder; ms since epoch. */
  get newestAt(): number | null {
    return this.#newestAt
  }

  /** The newest first. */
  async list(): Promise<Backup[]> {
    const folder = join(this.#deps.dir, FOLDER)
    const names = await readdir(folder).catch(nothingThere)
    const found = await Promise.all(names.map((name) => backupAt(folder, name)))
    const backups = found.filter((backup) => backup !== null).sort((a, b) => b.at - a.at)
    this.#newestAt = backups[0]?.at ?? null
    return backups
  }

  /** Whoever asks while one is being made gets that one. Throws `internal_error` saying why it failed. */
  make(signal?: AbortSignal): Promise<Backup> {
    this.#making ??= this.#make(signal).finally(() => {
      this.#making = null
    })
    return this.#making
  }

  async #make(signal?: AbortSignal): Promise<Backup> {
    const { dir, clock, write } = this.#deps
    await makeBackupFolder(dir)
    await removeLeftovers(join(dir, FOLDER), clock.now())
    const target = backupPath(dir, clock.now())
    const problem = await write(target, signal)
    if (problem !== null) throw new AppError('internal_error', { message: `No backup was made: ${problem}` })
    const made = (await this.list()).find(({ name }) => target.endsWith(name))
    if (!made) throw new AppError('internal_error', { message: 'No backup was made: the file is not there.' })
    return made
  }

  /** Removes all but the newest `count`, with their keys. Returns their names. */
  async keepNewest(count: number): Promise<string[]> {
    const old = (await this.list()).slice(count)
    for (const { name } of old)
      for (const path of [name, `${name}.key`]) await rm(join(this.#deps.dir, FOLDER, path), { force: true })
    return old.map(({ name }) => name)
  }

  /** Its path. Throws `not_found`; a name that leads elsewhere is none. */
  async find(name: string): Promise<string> {
    const known = (await this.list()).find((backup) => backup.name === name)
    if (!known) throw new AppError('not_found', { message: 'There is no such backup.' })
    return join(this.#deps.dir, FOLDER, known.name)
  }
}

const nothingThere = (err: NodeJS.ErrnoException): string[] => {
  if (err.code === 'ENOENT') return []
  throw err
}

const LEFTOVER_MS = 3_600_000

/** Of backups whose process was ended in the middle; a younger one may still be written by a command. */
const removeLeftovers = async (folder: string, now: number): Promise<void> => {
  const partial = (await readdir(folder)).filter(
    (name) => NAME.test(name.replace(/\.partial$/, '')) && !NAME.test(name),
  )
  for (const path of partial.map((name) => join(folder, name))) {
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: now }))
    if (mtimeMs < now - LEFTOVER_MS) await rm(path, { force: true })
  }
}

const backupAt = async (folder: string, name: string): Promise<Backup | null> => {
  const [year, month, day, hour, minute, second] = (NAME.exec(name) ?? []).slice(1).map(Number)
  if (year === undefined || month === undefined) return null
  const { size } = await stat(join(folder, name)).catch(() => ({ size: null })) // removed a moment ago
  return size === null ? null : { name, bytes: size, at: Date.UTC(year, month - 1, day, hour, minute, second) }
}
