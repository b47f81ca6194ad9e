/** Appends records to the files of captured requests, compressed and sealed, in small steps. */
import { appendFile } from 'node:fs/promises'
import type { Sealer } from '../../lib/seal.ts'
import { requestPath, sealContext } from './capture.ts'
import type { CaptureEntry } from './recorder.ts'
import { type CaptureRecord, encodeFrame, encodeRecords, MAX_RECORD_BYTES } from './records.ts'

interface WriterDeps {
  dir: string
  sealer: Sealer
}

/** Appends one frame, if it is not larger than `leftBytes`; resolves with its size, or null if it is. */
type Step = (leftBytes: number) => Promise<number | null>

/** One step for each frame. The first and the last record have frames of their own, so that a list can read only these. */
export function* appendRecords(
  { dir, sealer }: WriterDeps,
  { capture, id }: CaptureEntry,
  records: readonly CaptureRecord[],
): Generator<Step> {
  const path = requestPath(dir, capture.id, id)
  const context = sealContext(capture.id, id)
  for (const frame of inFrames(records))
    yield async (leftBytes) => {
      const bytes = await encodeFrame(encodeRecords(frame), sealer, context)
      if (bytes.length > leftBytes) return null
      await appendFile(path, bytes, { mode: 0o600 })
      return bytes.length
    }
}

/** About the length of the head of a record. */
const HEAD_BYTES = 64

const isAlone = ({ head }: CaptureRecord): boolean => head.kind === 'request' || head.kind === 'end'

function* inFrames(records: readonly CaptureRecord[]): Generator<CaptureRecord[]> {
  let frame: CaptureRecord[] = []
  let frameBytes = 0
  for (const record of records) {
    if (frame.length > 0 && (isAlone(record) || frameBytes + record.bytes.length > MAX_RECORD_BYTES)) {
      yield frame
      frame = []
      frameBytes = 0
    }
    if (isAlone(record)) yield [record]
    else {
      frame.push(record)
      frameBytes += record.bytes.length + HEAD_BYTES
    }
  }
  if (frame.length > 0) yield frame
}
