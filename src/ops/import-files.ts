/** Recognizes and reads the files of an import. A database is read from a private copy, which is removed afterwards. */
import { constants, Database } from 'bun:sqlite'
import { copyFile, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Db } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { readFernetKey } from '../lib/fernet.ts'
import { mapInOrder } from '../lib/in-order.ts'
import { decodeFile } from '../lib/utf8.ts'
import { isZip, readZip, type ZipBudget, ZipError } from '../lib/zip.ts'
import { readImportedUpTo } from '../model/imports/apply-history.ts'
import { isBundle, openBundle } from '../model/imports/bundle.ts'
import { readCodexLb } from '../model/imports/codex-lb.ts'
import type { Found, LeftOut } from '../model/imports/found.ts'
import { readTextFile } from '../model/imports/text-files.ts'
import { FORMAT_NAMES, type Format } from '../model/imports/words.ts'

/** A database can be large, so it can be given by its path. */
export type ImportFile = { name: string; bytes: Uint8Array } | { name: string; path: string }

export interface ReadingFiles {
  /** The data folder, where a database is copied. */
  dir: string
  clock: Clock
  db: Db
  passphrase: string | null
  /** Null means any known format. */
  format: Format | null
}

/**
 * Reads the files. A file that cannot be read becomes an item that is left out. Throws `invalid_import` if no file can
 * be read, and for a database that cannot be read.
 */
export const readImportFiles = async (files: readonly ImportFile[], reading: ReadingFiles): Promise<Found[]> => {
  const budget = { files: MAX_ZIPPED_FILES, bytes: 2 * MAX_TEXT_BYTES }
  const opened = (await mapInOrder(files, (file) => openArchive(file, budget))).flat()
  const keys = opened.flatMap((file) => ('bytes' in file ? (readKey(file.bytes) ?? []) : []))
  requireAtRest(opened)
  const results = await mapInOrder(opened.filter(isContent), (file) => readOne(file, keys[0] ?? null, reading))
  const found = results.flatMap((result) => ('format' in result ? [result] : []))
  const leftOut = results.flatMap((result) => ('format' in result ? [] : [result]))
  const [first, ...others] = found
  if (!first)
    throw new AppError('invalid_import', {
      message: leftOut.map(({ reason }) => reason).join(' ') || 'No file can be imported.',
    })
  requireFormat(found, reading.format)
  return [{ ...first, leftOut: [...first.leftOut, ...leftOut] }, ...others]
}

const requireFormat = (found: readonly Found[], format: Format | null): void => {
  const other = found.find((one) => format !== null && one.format !== format)
  if (other && format)
    throw new AppError('invalid_import', {
      message: `${other.name} is from ${FORMAT_NAMES[other.format]}, not from ${FORMAT_NAMES[format]}.`,
      param: other.name,
    })
}

const MAX_TEXT_BYTES = 32 * 1024 * 1024
const MAX_ZIPPED_FILES = 10_000

/** Unpacks an archive. `budget` is shared by all archives and decreases. */
const openArchive = async (file: ImportFile, budget: ZipBudget): Promise<ImportFile[]> => {
  if (!('bytes' in file) || !isZip(file.bytes)) return [file]
  try {
    const texts = await readZip(file.bytes, { budget, bytes: MAX_TEXT_BYTES, wants: isText })
    return texts.map(({ name, text }) => ({ name, bytes: Buffer.from(text) }))
  } catch (err) {
    if (err instanceof ZipError) throw refuse(file.name, `${err.message}.`)
    throw err
  }
}

const isText = (name: string): boolean => /\.(json|ya?ml|txt)$/i.test(name) && !name.startsWith('__MACOSX/')

const KEY_MAX_BYTES = 128

const readKey = (bytes: Uint8Array): Buffer | null =>
  bytes.length > KEY_MAX_BYTES ? null : readFernetKey(decodeFile(bytes))

/** The files that SQLite keeps beside an open database. */
const BESIDE = /-(wal|shm|journal)$/

const isContent = (file: ImportFile): boolean =>
  'path' in file || !(BESIDE.test(file.name) || file.bytes.length === 0 || readKey(file.bytes))

/** Throws `invalid_import` for files that show that a database is in use. */
const requireAtRest = (files: readonly ImportFile[]): void => {
  const open = files.find((file) => 'bytes' in file && BESIDE.test(file.name) && file.bytes.length > 0)
  if (open) throw inUse(open.name.replace(BESIDE, ''))
}

const inUse = (name: string): AppError =>
  refuse(
    name,
    'is in use, or was not closed properly. Stop codex-lb and try again. If it is already stopped, start it and stop it once.',
  )

const SQLITE = 'SQLite format 3\0'

const readOne = async (file: ImportFile, key: Buffer | null, reading: ReadingFiles): Promise<Found | LeftOut> => {
  if ('path' in file || decodeFile(file.bytes.subarray(0, SQLITE.length)) === SQLITE)
    return readStore(file, key, reading)
  const text = decodeFile(file.bytes)
  if (isBundle(text)) return openBundle({ name: file.name, text }, reading.passphrase)
  try {
    return readTextFile({ name: file.name, text })
  } catch (err) {
    if (!(err instanceof AppError) || err.code !== 'invalid_import') throw err
    return { kind: 'account', label: file.name, reason: err.message }
  }
}

const readStore = async (file: ImportFile, key: Buffer | null, { dir, clock, db }: ReadingFiles): Promise<Found> => {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const folder = await mkdtemp(join(dir, 'import-'))
  try {
    const copy = join(folder, 'store.db')
    if ('path' in file) await copyAtRest(file, copy)
    else await writeFile(copy, file.bytes, { mode: 0o600 })
    const url = `${pathToFileURL(copy).href}?mode=ro&immutable=1`
    const store = new Database(url, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI)
    try {
      return await readCodexLb(store, {
        name: file.name,
        key,
        clock,
        readImportedUpTo: (origin) => readImportedUpTo(db, origin),
      })
    } finally {
      store.close()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Throws `invalid_import` if another program has it open or writes to it while it is copied. */
const copyAtRest = async ({ name, path }: { name: string; path: string }, copy: string): Promise<void> => {
  const beside = await mapInOrder(['-wal', '-shm', '-journal'], (suffix) => stat(path + suffix).catch(() => null))
  if (beside.some((one) => one !== null)) throw inUse(name)
  const before = await stat(path)
  await copyFile(path, copy)
  const after = await stat(path)
  if (before.mtimeMs !== after.mtimeMs || before.size !== after.size) throw inUse(name)
}

const refuse = (name: string, why: string): AppError =>
  new AppError('invalid_import', { message: `${name} ${why}`, param: name })
