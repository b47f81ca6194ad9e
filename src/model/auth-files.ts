/** Opens what people hand over for an import: `auth.json` files and ZIP archives of them, each within its bounds. */
import { decodeFile } from '../lib/utf8.ts'
import { isZip, readZip, type ZipBudget, ZipError } from '../lib/zip.ts'
import type { AuthFile, ImportFailure } from './account-import.ts'

export const MAX_IMPORT_BYTES = 32 * 1024 * 1024
export const MAX_IMPORT_FILES = 1000
/** Many times what the native client writes. */
const MAX_FILE_BYTES = 64 * 1024

export interface OpenedFiles {
  files: AuthFile[]
  /** What could not be read at all. */
  failures: ImportFailure[]
}

/** What all archives of one import may unpack to. */
export const importBudget = (): ZipBudget => ({ files: MAX_IMPORT_FILES, bytes: MAX_IMPORT_BYTES })

/** The one file, or those of an archive. */
export const openFile = async (name: string, bytes: Uint8Array, budget: ZipBudget): Promise<OpenedFiles> =>
  isZip(bytes) ? unzip(name, bytes, budget) : asAuthFile(name, decodeFile(bytes))

export const asAuthFile = (name: string, text: string): OpenedFiles =>
  text.length > MAX_FILE_BYTES
    ? failed(name, 'is too large for an auth.json')
    : { files: [{ name, text }], failures: [] }

const unzip = async (name: string, bytes: Uint8Array, budget: ZipBudget): Promise<OpenedFiles> => {
  try {
    const files = await readZip(bytes, { budget, bytes: MAX_FILE_BYTES, wants: isAuthFile })
    return files.length === 0 ? failed(name, 'holds no .json file') : { files, failures: [] }
  } catch (err) {
    if (err instanceof ZipError) return failed(name, err.message)
    throw err
  }
}

/** Archives of some systems hold a shadow of every file. */
const isAuthFile = (name: string): boolean => name.toLowerCase().endsWith('.json') && !name.startsWith('__MACOSX/')

const failed = (file: string, why: string): OpenedFiles => ({
  files: [],
  failures: [{ file, message: `${file}: ${why}` }],
})
