/** The files of an import: those in a folder of another tool, or one file. */
import { open, readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { mapInOrder } from '../lib/in-order.ts'
import type { ImportFile } from '../ops/import-files.ts'
import { UsageError } from './command.ts'

const STORE = 'store.db'
const KEY = 'encryption.key'
const SQLITE = 'SQLite format 3\0'

/** Throws `UsageError` for a path without files. */
export const getImportFiles = async (path: string, keyPath: string | undefined): Promise<ImportFile[]> => {
  const found = await stat(path).catch(() => null)
  if (found === null) throw new UsageError(`${path} does not exist.`)
  if (!found.isDirectory()) return readOne(path, keyPath)
  const names = await readdir(path)
  if (names.includes(STORE)) return readStore(join(path, STORE), keyPath)
  const texts = names.filter((name) => /\.(json|ya?ml)$/i.test(name)).toSorted()
  if (texts.length === 0)
    throw new UsageError(`${path} has no ${STORE} and no .json, .yaml or .yml file. Name the file to import.`)
  return mapInOrder(texts, async (name) => ({ name, bytes: await readFile(join(path, name)) }))
}

const readOne = async (path: string, keyPath: string | undefined): Promise<ImportFile[]> =>
  (await isDatabase(path)) ? readStore(path, keyPath) : [{ name: basename(path), bytes: await readFile(path) }]

const isDatabase = async (path: string): Promise<boolean> => {
  const file = await open(path)
  try {
    const { buffer } = await file.read({ buffer: Buffer.alloc(SQLITE.length) })
    return buffer.toString('latin1') === SQLITE
  } finally {
    await file.close()
  }
}

/** The database, with the encryption key beside it if there is one. */
const readStore = async (path: string, keyPath = join(dirname(path), KEY)): Promise<ImportFile[]> => {
  const key = await readFile(keyPath).catch(() => null)
  return [{ name: basename(path), path }, ...(key ? [{ name: KEY, bytes: key }] : [])]
}
