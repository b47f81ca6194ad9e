/** Opens files uploaded for an import: `auth.json` files and ZIP archives of them, with limits. */
import { decodeFile } from '../../lib/utf8.ts'
import { isZip, readZip, type ZipBudget, ZipError } from '../../lib/zip.ts'
import type { AuthFile, ImportFailure } from './account-import.ts'

export const MAX_IMPORT_BYTES = 32 * 1024 * 1024
export const MAX_IMPORT_FILES = 1000
/** Many times what the Codex CLI writes. */
const MAX_FILE_BYTES = 64 * 1024

export interface OpenedFiles {
  files: AuthFile[]
  /** Files that could not be read. */
  failures: ImportFailure[]
}

/** The limit for all archives of one import together. */
export const importBudget = (): ZipBudget => ({ files: MAX_IMPORT_FILES, bytes: MAX_IMPORT_BYTES })

/** The file itself, or the files of an archive. */
export const openFile = async (name: string, bytes: Uint8Array, budget: ZipBudget): Promise<OpenedFiles> =>
  isZip(bytes) ? unzip(name, bytes, budget) : asAuthFiles(name, decodeFile(bytes))

/** More than a thousand files of the Codex CLI; scanning takes a few milliseconds. */
const MAX_JOINED_CHARS = 8 * 1024 * 1024

/** One file, or several concatenated, for example pasted one after another. */
export const asAuthFiles = (name: string, text: string): OpenedFiles => {
  const texts = jsonTexts(text)
  const opened: OpenedFiles = { files: [], failures: [] }
  for (const [index, one] of texts.entries()) {
    const called = texts.length === 1 ? name : `${name} (${index + 1} of ${texts.length})`
    if (one.length > MAX_FILE_BYTES) opened.failures.push(failure(called, TOO_LARGE))
    else opened.files.push({ name: called, text: one })
  }
  return opened
}

const TOO_LARGE = 'is too large. An auth.json has a few kilobytes; Sluice reads up to 64 KB'

/** The JSON objects in `text`, without surrounding text; without any, the text itself. The last may be incomplete. */
const jsonTexts = (text: string): string[] => {
  if (text.length > MAX_JOINED_CHARS) return [text]
  const found: string[] = []
  let depth = 0
  let start = 0
  let isString = false
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]
    if (isString) {
      if (char === '\\') at += 1
      else if (char === '"') isString = false
    } else if (char === '"') isString = depth > 0
    else if (char === '{') {
      if (depth === 0) start = at
      depth += 1
    } else if (char === '}' && depth > 0) {
      depth -= 1
      if (depth === 0) found.push(text.slice(start, at + 1))
    }
  }
  if (depth > 0) found.push(text.slice(start))
  return found.length === 0 ? [text] : found
}

const unzip = async (name: string, bytes: Uint8Array, budget: ZipBudget): Promise<OpenedFiles> => {
  try {
    const files = await readZip(bytes, { budget, bytes: MAX_FILE_BYTES, wants: isAuthFile })
    return files.length === 0 ? failed(name, 'contains no .json file') : { files, failures: [] }
  } catch (err) {
    if (err instanceof ZipError) return failed(name, err.message)
    throw err
  }
}

/** macOS adds a hidden copy of every file to its archives. */
const isAuthFile = (name: string): boolean => name.toLowerCase().endsWith('.json') && !name.startsWith('__MACOSX/')

const failed = (file: string, why: string): OpenedFiles => ({ files: [], failures: [failure(file, why)] })

const failure = (file: string, why: string): ImportFailure => ({ file, message: `${file} ${why}.` })
