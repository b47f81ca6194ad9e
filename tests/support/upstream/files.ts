/** Uploaded files as ChatGPT is assumed to keep them: each belongs to the account that created it. */
import type { Account } from './accounts.ts'
import { apiError, detail } from './refusal.ts'
import type { RelayCall, RelayRoute } from './relay-routes.ts'
import { isJson, type Json } from './script.ts'

interface StoredFile {
  owner: Account
  name: string
  /** The number of finalize requests so far. */
  polls: number
}

const stores = new WeakMap<object, Map<string, StoredFile>>()

const getStore = ({ world }: Pick<RelayCall, 'world'>): Map<string, StoredFile> => {
  const store = stores.get(world.ledger) ?? new Map<string, StoredFile>()
  stores.set(world.ledger, store)
  return store
}

const MAX_FILE_BYTES = 512 * 1024 * 1024

function create(call: RelayCall): Response {
  const { received, account, world } = call
  const { body, headers } = received
  if (!headers['content-type']?.startsWith('application/json') || !isJson(body)) throw detail(422, 'Expected JSON')
  const { file_name: name, file_size: size, use_case: useCase } = body
  if (typeof name !== 'string' || name === '') throw apiError(422, 'invalid', 'file_name is missing', 'file_name')
  if (!Number.isInteger(size) || Number(size) < 1 || Number(size) > MAX_FILE_BYTES)
    throw apiError(422, 'invalid', 'file_size is wrong', 'file_size')
  if (useCase !== 'codex') throw apiError(422, 'invalid', 'use_case is wrong', 'use_case')
  const id = world.mint('file')
  getStore(call).set(id, { owner: account, name, polls: 0 })
  return Response.json({ file_id: id, upload_url: `https://files.example.test/${id}?sig=secret` })
}

/** Assumed: ChatGPT needs a moment after the upload and answers `retry` until it is done. */
function finalize(call: RelayCall): Response {
  const { received, account, world } = call
  const id = received.path.split('/').at(-2) ?? ''
  const file = getStore(call).get(id)
  if (!file || file.owner !== account) {
    world.ledger.odd(`the file ${id} was finalized by ${account.email}, which did not create it`)
    throw detail(404, 'File not found')
  }
  if (!isJson(received.body)) throw detail(422, 'Expected JSON')
  file.polls += 1
  if (file.polls === 1) return Response.json({ status: 'retry' })
  const url = `https://files.example.test/${id}/download?sig=secret`
  return Response.json({ status: 'success', download_url: url, file_name: file.name, mime_type: 'text/plain' })
}

/** Assumed: like transcription, these routes take only the smallest set of headers. */
export const FILES: readonly RelayRoute[] = [
  { method: 'POST', path: 'files', fault: 'file', headers: 'smallest', answer: create },
  { method: 'POST', path: 'files/:id/uploaded', fault: 'file', headers: 'smallest', answer: finalize },
]

/** Rejects a model request that names a file of another account; unknown files are not checked. */
export function judgeFiles(input: readonly Json[], account: Account, ledger: object): void {
  const store = stores.get(ledger)
  if (!store) return
  for (const { content } of input) {
    if (!Array.isArray(content)) continue
    for (const part of content) {
      const file = isJson(part) ? store.get(String(part.file_id)) : undefined
      if (file && file.owner !== account) throw apiError(404, 'file_not_found', 'The file was not found.', 'input')
    }
  }
}
