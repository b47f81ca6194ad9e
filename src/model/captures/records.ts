/**
 * The file of one captured request: a sequence of frames, each of which can be read without the others, so a file whose
 * end is missing is readable up to there. A frame holds records: a small JSON head, and bytes.
 */
import type { Sealer } from '../../lib/seal.ts'

/** The model source that served, with its name at that time. */
export interface CapturedSource {
  id: string
  name: string
}

export type RecordHead =
  | {
      kind: 'request'
      /** ms since epoch, as in all records. */
      at: number
      method: string
      /** Path with its query, without credentials. */
      target: string
      transport: string
      requestKind: string
      model: string | null
      keyId: string | null
      headers: [name: string, value: string][]
      /** Length of the body, which follows in `body` records. */
      bodyBytes: number
    }
  | { kind: 'body'; at: number }
  /** By an account, or by a model source where `accountId` is null. */
  | { kind: 'attempt'; at: number; accountId: string | null; source?: CapturedSource }
  | { kind: 'answered'; at: number; status: number; headers: [name: string, value: string][] }
  /** Bytes as ChatGPT or the source sent them. */
  | { kind: 'answer'; at: number }
  | { kind: 'failed'; at: number; code: string | null; message: string }
  | {
      kind: 'end'
      at: number
      status: string
      httpStatus: number
      errorCode: string | null
      errorMessage: string | null
      /** What could not be written in time. */
      droppedBytes: number
    }

export interface CaptureRecord {
  head: RecordHead
  bytes: Uint8Array
}

/** Bytes of a record; larger ones are split, so that compressing and sealing one never takes long. */
export const MAX_RECORD_BYTES = 256 * 1024
const LENGTH_BYTES = 4
/** A frame of records; compressed ones are rarely larger than their content. */
const MAX_FRAME_BYTES = 4 * MAX_RECORD_BYTES

/** Records as the content of a frame. */
export const encodeRecords = (records: readonly CaptureRecord[]): Buffer<ArrayBuffer> =>
  Buffer.concat(
    records.flatMap(({ head, bytes }) => {
      const text = Buffer.from(JSON.stringify(head))
      return [length(text.length), text, length(bytes.length), bytes]
    }),
  )

export const decodeRecords = (content: Buffer): CaptureRecord[] => {
  const records: CaptureRecord[] = []
  for (let at = 0; at < content.length; ) {
    const text = at + LENGTH_BYTES
    const headEnd = text + content.readUInt32LE(at)
    const body = headEnd + LENGTH_BYTES
    const end = body + content.readUInt32LE(headEnd)
    const head = JSON.parse(content.toString('utf8', text, headEnd)) as RecordHead // as: sealed by us
    records.push({ head, bytes: content.subarray(body, end) })
    at = end
  }
  return records
}

/** `length, sealed content, length`: the second one lets a reader find the last frame. */
export const encodeFrame = async (
  content: Uint8Array<ArrayBuffer>,
  sealer: Pick<Sealer, 'sealBytes'>,
  context: string,
): Promise<Buffer<ArrayBuffer>> => {
  const sealed = sealer.sealBytes(await Bun.zstdCompress(content, { level: 1 }), context)
  return Buffer.concat([length(sealed.length), sealed, length(sealed.length)])
}

export const FRAME_OVERHEAD_BYTES = 2 * LENGTH_BYTES

/** The size of a frame with this length, or null if it cannot be one. */
export const frameBytes = (sealedLength: number): number | null =>
  sealedLength > 0 && sealedLength <= MAX_FRAME_BYTES ? sealedLength + FRAME_OVERHEAD_BYTES : null

/** `frame` whole, with both lengths. Throws `SealError`; null if the lengths differ. */
export const decodeFrame = async (
  frame: Buffer,
  sealer: Pick<Sealer, 'openBytes'>,
  context: string,
): Promise<CaptureRecord[] | null> => {
  const sealedLength = frame.readUInt32LE(0)
  if (frame.length !== sealedLength + FRAME_OVERHEAD_BYTES) return null
  if (frame.readUInt32LE(frame.length - LENGTH_BYTES) !== sealedLength) return null
  const compressed = sealer.openBytes(frame.subarray(LENGTH_BYTES, -LENGTH_BYTES), context)
  return decodeRecords(await Bun.zstdDecompress(compressed))
}

const length = (bytes: number): Buffer => {
  const out = Buffer.alloc(LENGTH_BYTES)
  out.writeUInt32LE(bytes)
  return out
}
