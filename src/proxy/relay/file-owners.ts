/**
 * Which account has an uploaded file. Only that account can finalize it, and only there can a model request name it. The ids are
 * stored as hashes, scoped by the client's key, so a file of another key is unknown.
 */
import { AppError } from '../../errors.ts'
import { getObjects, isObject } from '../../lib/json.ts'
import { FILE_LIFE_MS } from '../../model/conversations/uploaded-files.ts'
import { type AffinityMap, type AffinityRow, threadHash } from '../pool/affinity.ts'

interface Deps {
  affinity: AffinityMap
  now: number
  keyId: string | null
}

export const fileOwner = ({ affinity, now, keyId }: Deps, fileId: string): string | null =>
  affinity.get('file', threadHash(fileId, keyId), now, FILE_LIFE_MS)?.accountId ?? null

/** Returns the row to write, or null when the stored one is recent enough. */
export const rememberFile = (
  { affinity, now, keyId }: Deps,
  { fileId, accountId }: { fileId: string; accountId: string },
): AffinityRow | null => affinity.remember('file', threadHash(fileId, keyId), accountId, { now, mixed: false })

/** The files that the input of a Responses request names: `input_file.file_id`, in messages and in the output of tools. */
export const getFileIds = (input: unknown): string[] => {
  const ids = new Set<string>()
  if (!Array.isArray(input)) return []
  for (const item of input) {
    if (!isObject(item)) continue
    for (const parts of [item.content, item.output]) {
      if (!Array.isArray(parts)) continue
      for (const { type, file_id: id } of getObjects(parts))
        if (type === 'input_file' && typeof id === 'string' && id !== '') ids.add(id)
    }
  }
  return [...ids]
}

/** The account and the rows to write because the files are in use; null where none of them was uploaded through Sluice. */
export interface FilesInUse {
  accountId: string
  rows: AffinityRow[]
}

/** Throws `continuity_owner_conflict` and `file_owner_unavailable`. */
export const useFiles = (deps: Deps, fileIds: readonly string[]): FilesInUse | null => {
  const owners = new Set(fileIds.map((fileId) => fileOwner(deps, fileId)))
  const [accountId, ...others] = [...owners].filter((id) => id !== null)
  if (accountId === undefined) return null
  if (others.length > 0) throw new AppError('continuity_owner_conflict', { param: 'input' })
  if (owners.has(null))
    throw new AppError('file_owner_unavailable', {
      message: 'Sluice no longer knows which account has one of the files of this request. Upload the files again.',
      param: 'input',
    })
  const rows = fileIds.map((fileId) => rememberFile(deps, { fileId, accountId })).filter((row) => row !== null)
  return { accountId, rows }
}
