/** The backups in the data folder: which there are, making one in a process of its own, and keeping the newest few. */
import { chmod, mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { removeLeftovers } from './backup-file.ts'
import { runOwnCommand } from './own-command.ts'

export interface Backup {
  name: string
  bytes: number
  /** ms since epoch, as its name says. */
  at: number
  kind: BackupKind
}

/** Made by itself, or because somebody asked: these do not count among those that are kept of the others. */
type BackupKind = 'scheduled' | 'manual'

interface BackupsDeps {
  /** The data folder. */
  dir: string
  clock: Clock
  /** Writes a backup to `target`; null, or why it failed. Must not block: it runs beside turns. */
  write: (target: string, signal?: AbortSignal) => Promise<string | null>
}

const FOLDER = 'backups'
/** Only what is called like this is counted and removed here: other files in the folder are somebody's own. */
const NAME = /^sluice-(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)(-manual)?\.db$/
/** Between the last one and another that somebody asks for. */
const PAUSE_MS = 60_000

/** Where those of the data folder `dir` lie. */
export const backupFolder = (dir: string): string => join(dir, FOLDER)

/** Where a backup made at `at` (ms since epoch) goes unless told otherwise. */
export const backupPath = (dir: string, at: number, kind: BackupKind): string => {
  const stamp = new Date(at).toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')
  return join(backupFolder(dir), `sluice-${stamp}${kind === 'manual' ? '-manual' : ''}.db`)
}

/** Made when missing, for its owner only. */
export const makeBackupFolder = async (dir: string): Promise<void> => {
  await mkdir(backupFolder(dir), { recursive: true, mode: 0o700 })
  await chmod(backupFolder(dir), 0o700)
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
    const folder = backupFolder(this.#deps.dir)
    const names = await readdir(folder).catch(nothingThere)
    const found = await Promise.all(names.map((name) => backupAt(folder, name)))
    const backups = found.filter((backup) => backup !== null).sort((a, b) => b.at - a.at)
    const now = this.#deps.clock.now()
    this.#newestAt = backups.find(({ at }) => at <= now)?.at ?? null
    return backups
  }

  /**
   * Whoever asks while one is being made gets that one. Throws `internal_error` saying why it failed, and `busy` for a manual
   * one within a minute of the last.
   */
  make(kind: BackupKind, signal?: AbortSignal): Promise<Backup> {
    this.#making ??= this.#make(kind, signal).finally(() => {
      this.#making = null
    })
    return this.#making
  }

  async #make(kind: BackupKind, signal?: AbortSignal): Promise<Backup> {
    const { dir, clock, write } = this.#deps
    if (kind === 'manual') await this.#demandPause()
    const target = backupPath(dir, clock.now(), kind)
    const problem = await makeReady(dir, clock.now()).then(
      () => write(target, signal),
      (err: Error) => err.message,
    )
    if (problem !== null) throw new AppError('internal_error', { message: `The backup failed: ${spoken(problem)}` })
    const made = (await this.list()).find(({ name }) => target.endsWith(name))
    if (!made) throw new AppError('internal_error', { message: 'The backup failed: its file is missing.' })
    return made
  }

  async #demandPause(): Promise<void> {
    await this.list()
    const left = (this.newestAt ?? Number.NEGATIVE_INFINITY) + PAUSE_MS - this.#deps.clock.now()
    if (left > 0)
      throw new AppError('busy', {
        message: 'A backup was just created. Wait a minute before you create another one.',
        retryAfterSeconds: Math.ceil(left / 1000),
      })
  }

  /**
   * Removes all but the newest `count` of each kind, with their keys, so that asking for many takes none away that were made
   * by themselves. Those of a time to come neither count nor go: a clock was wrong. Returns their names.
   */
  async keepNewest(count: number): Promise<string[]> {
    const now = this.#deps.clock.now()
    const past = (await this.list()).filter(({ at }) => at <= now)
    const old = [...Map.groupBy(past, ({ kind }) => kind).values()].flatMap((same) => same.slice(count))
    for (const { name } of old)
      for (const path of [name, `${name}.key`]) await rm(join(backupFolder(this.#deps.dir), path), { force: true })
    return old.map(({ name }) => name)
  }

  /** Its path. Throws `not_found`; a name that leads elsewhere is none. */
  async find(name: string): Promise<string> {
    const known = (await this.list()).find((backup) => backup.name === name)
    if (!known) throw new AppError('not_found', { message: 'Backup not found. It may have been deleted.' })
    return join(backupFolder(this.#deps.dir), known.name)
  }
}

const makeReady = async (dir: string, now: number): Promise<void> => {
  await makeBackupFolder(dir)
  removeLeftovers(backupFolder(dir), now, (name) => NAME.test(name))
}

/** What a command says on stderr, as the end of a sentence. */
const spoken = (said: string): string => said.replace(/^sluice: /, '').replace(/\.?$/, '.')

const nothingThere = (err: NodeJS.ErrnoException): string[] => {
  if (err.code === 'ENOENT') return []
  throw err
}

const backupAt = async (folder: string, name: string): Promise<Backup | null> => {
  const [, ...parts] = NAME.exec(name) ?? []
  const [year, month, day, hour, minute, second] = parts.slice(0, 6).map(Number)
  if (year === undefined || month === undefined) return null
  const { size } = await stat(join(folder, name)).catch(() => ({ size: null })) // removed a moment ago
  if (size === null) return null
  const kind = parts[6] === undefined ? 'scheduled' : 'manual'
  return { name, bytes: size, at: Date.UTC(year, month - 1, day, hour, minute, second), kind }
}
