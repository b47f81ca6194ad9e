/** Whether zstd bytes are whole: the runtime's decoder returns what it has of a truncated body, without an error (measured). */

/** True when `bytes` is one or more complete frames and nothing else (RFC 8878 §3.1). Reads headers only. */
export function isWholeZstd(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  try {
    do at = endOfFrame(view, at)
    while (at < bytes.length)
  } catch (error) {
    if (error instanceof RangeError) return false // read past the end: cut short
    throw error
  }
  return at === bytes.length
}

const MAGIC = 0xfd2fb528
const SKIPPABLE_MAGIC = 0x184d2a50
const DICTIONARY_ID_BYTES = [0, 1, 2, 4]
const CONTENT_SIZE_BYTES = [0, 2, 4, 8]
const RLE_BLOCK = 1

function endOfFrame(view: DataView, start: number): number {
  const magic = view.getUint32(start, true)
  if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC) return start + 8 + view.getUint32(start + 4, true)
  if (magic !== MAGIC) return Number.POSITIVE_INFINITY
  const descriptor = view.getUint8(start + 4)
  const hasChecksum = (descriptor & 4) !== 0
  return endOfBlocks(view, start + 5 + headerBytes(descriptor)) + (hasChecksum ? 4 : 0)
}

/** Bytes between the descriptor and the first block: window, dictionary id, content size. */
function headerBytes(descriptor: number): number {
  const isSingleSegment = (descriptor & 32) !== 0
  const sizeFlag = descriptor >> 6
  const contentSize = sizeFlag === 0 && isSingleSegment ? 1 : CONTENT_SIZE_BYTES[sizeFlag]!
  return (isSingleSegment ? 0 : 1) + DICTIONARY_ID_BYTES[descriptor & 3]! + contentSize
}

function endOfBlocks(view: DataView, start: number): number {
  let at = start
  for (let isLast = false; !isLast; ) {
    const header = view.getUint16(at, true) | (view.getUint8(at + 2) << 16)
    isLast = (header & 1) !== 0
    at += 3 + (((header >> 1) & 3) === RLE_BLOCK ? 1 : header >> 3)
  }
  return at
}
