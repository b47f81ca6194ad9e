/** Reads captured requests: a page of a capture's list, one request, or all bytes of one side of it. */
import { type FileHandle, open, readdir } from 'node:fs/promises'
import type { Sealer } from '../../lib/seal.ts'
import { captureFolder, getRequestId, requestPath, sealContext } from './capture.ts'
import {
  type CapturedSource,
  type CaptureRecord,
  decodeFrame,
  FRAME_OVERHEAD_BYTES,
  frameBytes,
  type RecordHead,
} from './records.ts'

interface ArchiveDeps {
  /** The data folder. */
  dir: string
  sealer: Sealer
}

type Head<Kind extends RecordHead['kind']> = Extract<RecordHead, { kind: Kind }>

export interface ListedRequest {
  id: string
  captureId: string
  /** Null: the file cannot be read, for example because it was encrypted with another key. */
  request: Head<'request'> | null
  /** Null: it is still running, or the rest was lost. */
  end: Head<'end'> | null
  /** On disk. */
  bytes: number
}

export interface CapturedAttempt {
  /** Null: a model source served. */
  accountId: string | null
  source: CapturedSource | null
  /** ms since epoch. */
  at: number
  status: number | null
  headers: [name: string, value: string][]
  error: { code: string | null; message: string } | null
  /** The answer, with the time each part arrived. */
  parts: { at: number; bytes: Uint8Array }[]
}

export interface CapturedContent extends ListedRequest {
  body: Uint8Array[]
  attempts: CapturedAttempt[]
  /** There is more than was read. */
  isCut: boolean
}

/** Newest first, those before `cursor`. `next` is the cursor of the following page. */
export const listRequests = async (
  deps: ArchiveDeps,
  captureIds: readonly string[],
  { cursor, limit }: { cursor: string | null; limit: number },
): Promise<{ items: ListedRequest[]; next: string | null }> => {
  const held = await Promise.all(captureIds.map((captureId) => idsIn(deps, captureId)))
  const captureOf = new Map(held.flat().filter(([id]) => cursor === null || id < cursor)) // once, if several hold it
  const ids = [...captureOf.keys()].sort().reverse()
  const page = ids.slice(0, limit)
  const items = await Promise.all(page.map((id) => listedRequest(deps, captureOf.get(id) ?? '', id)))
  return { items: items.filter((item) => item !== null), next: ids.length > limit ? (page.at(-1) ?? null) : null }
}

const idsIn = async ({ dir }: ArchiveDeps, captureId: string): Promise<[id: string, captureId: string][]> => {
  const names = await readdir(captureFolder(dir, captureId)).catch(() => []) // deleted in the meantime
  return names.map(getRequestId).flatMap((id) => (id === null ? [] : [[id, captureId]]))
}

const listedRequest = async (deps: ArchiveDeps, captureId: string, id: string): Promise<ListedRequest | null> => {
  const file = await open(requestPath(deps.dir, captureId, id)).catch(() => null) // deleted in the meantime
  if (!file) return null
  try {
    const { size } = await file.stat()
    const decode = (frame: Buffer) => decodeFrame(frame, deps.sealer, sealContext(captureId, id))
    const first = await firstFrame(file, size)
      .then((frame) => frame && decode(frame))
      .catch(() => null)
    const last = await lastFrame(file, size)
      .then((frame) => frame && decode(frame))
      .catch(() => null)
    const request = first?.[0]?.head
    const end = last?.at(-1)?.head
    return {
      id,
      captureId,
      request: request?.kind === 'request' ? request : null,
      end: end?.kind === 'end' ? end : null,
      bytes: size,
    }
  } finally {
    await file.close()
  }
}

const bytesAt = async (file: FileHandle, at: number, length: number): Promise<Buffer | null> => {
  const bytes = Buffer.alloc(length)
  const { bytesRead } = await file.read(bytes, 0, length, at)
  return bytesRead === length ? bytes : null
}

const LENGTH_BYTES = 4

const frameAt = async (file: FileHandle, at: number, size: number): Promise<Buffer | null> => {
  const bytes = frameBytes((await bytesAt(file, at, LENGTH_BYTES))?.readUInt32LE(0) ?? 0)
  return bytes !== null && at + bytes <= size ? bytesAt(file, at, bytes) : null
}

const firstFrame = (file: FileHandle, size: number): Promise<Buffer | null> => frameAt(file, 0, size)

const lastFrame = async (file: FileHandle, size: number): Promise<Buffer | null> => {
  if (size < FRAME_OVERHEAD_BYTES) return null
  const bytes = frameBytes((await bytesAt(file, size - LENGTH_BYTES, LENGTH_BYTES))?.readUInt32LE(0) ?? 0)
  return bytes !== null && bytes <= size ? bytesAt(file, size - bytes, bytes) : null
}

/** All records in order. Ends where the file is incomplete. Throws `SealError` for a file of another key. */
async function* getRecords(deps: ArchiveDeps, captureId: string, id: string): AsyncGenerator<CaptureRecord> {
  const file = await open(requestPath(deps.dir, captureId, id))
  try {
    const { size } = await file.stat()
    for (let at = 0; at < size; ) {
      const frame = await frameAt(file, at, size)
      const records = frame && (await decodeFrame(frame, deps.sealer, sealContext(captureId, id)))
      if (!frame || !records) return
      yield* records
      at += frame.length
    }
  } finally {
    await file.close()
  }
}

/**
 * The request and its answer, each up to `maxBytes`. Null where there is no such file. Throws `SealError` for a file of
 * another key.
 */
export const readRequest = async (
  deps: ArchiveDeps,
  captureId: string,
  { id, maxBytes }: { id: string; maxBytes: number },
): Promise<CapturedContent | null> => {
  const listed = await listedRequest(deps, captureId, id)
  if (!listed) return null
  const content: CapturedContent = { ...listed, body: [], attempts: [], isCut: false }
  let bodyBytes = 0
  let answerBytes = 0
  for await (const { head, bytes } of getRecords(deps, captureId, id)) {
    const attempt = content.attempts.at(-1)
    if (head.kind === 'body') {
      content.isCut ||= bodyBytes + bytes.length > maxBytes
      if (bodyBytes < maxBytes) content.body.push(bytes.subarray(0, maxBytes - bodyBytes))
      bodyBytes += bytes.length
    } else if (head.kind === 'attempt')
      content.attempts.push({
        accountId: head.accountId,
        source: head.source ?? null,
        at: head.at,
        status: null,
        headers: [],
        error: null,
        parts: [],
      })
    else if (head.kind === 'answered' && attempt) Object.assign(attempt, { status: head.status, headers: head.headers })
    else if (head.kind === 'failed' && attempt) attempt.error = { code: head.code, message: head.message }
    else if (head.kind === 'answer' && attempt) {
      content.isCut ||= answerBytes + bytes.length > maxBytes
      // An empty part would keep the memory of its whole frame.
      if (answerBytes < maxBytes) attempt.parts.push({ at: head.at, bytes: bytes.subarray(0, maxBytes - answerBytes) })
      answerBytes += bytes.length
    }
  }
  return content
}

/** All bytes of the request, or of the answer to its last attempt, read as they are sent. */
export const streamCapturedBytes = (
  deps: ArchiveDeps,
  captureId: string,
  { id, side, attempts }: { id: string; side: 'request' | 'answer'; attempts: number },
): ReadableStream<Uint8Array> => {
  const records = getRecords(deps, captureId, id)
  let seen = 0
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      for (;;) {
        const { done, value } = await records.next()
        if (done) return controller.close()
        if (value.head.kind === 'attempt') seen++
        const isWanted =
          side === 'request' ? value.head.kind === 'body' : value.head.kind === 'answer' && seen === attempts
        if (isWanted && value.bytes.length > 0) return controller.enqueue(value.bytes)
      }
    },
    async cancel() {
      await records.return(undefined)
    },
  })
}
