/** The parts of a captured answer as events or as one text. */
import { SseScanner } from '../../lib/sse.ts'
import type { CapturedAttempt } from './archive.ts'

export interface CapturedEvent {
  /** ms since epoch: when it arrived complete. */
  at: number
  type: string | null
  data: string
}

/** Whether the bytes are server-sent events; frames of a socket are stored in that form too. */
const isEvents = (start: string): boolean => /^(event|data|id|retry)?:/.test(start.trimStart())

/** Null for an answer that is no event stream. Comments have no data and are left out. */
export const getEvents = (parts: CapturedAttempt['parts']): CapturedEvent[] | null => {
  const first = parts[0]
  if (!first || !isEvents(Buffer.from(first.bytes.subarray(0, 32)).toString())) return null
  const scanner = new SseScanner()
  return parts.flatMap(({ at, bytes }) =>
    scanner.push(bytes).flatMap(({ type, data }) => (data === null ? [] : [{ at, type, data }])),
  )
}

/** Text, or base64 where the bytes are not UTF-8. */
export const textOrBase64 = (bytes: Uint8Array): { text: string | null; base64: string | null } => {
  try {
    return { text: strict.decode(bytes), base64: null }
  } catch {
    return { text: null, base64: Buffer.from(bytes).toString('base64') }
  }
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
