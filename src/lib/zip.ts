/** Reads text files of an in-memory ZIP archive: stored and deflated, limited in number and size. */
import { promisify } from 'node:util'
import { inflateRaw } from 'node:zlib'
import { decodeFile, decodeUtf8 } from './utf8.ts'

interface ZipFile {
  /** Including folders. */
  name: string
  text: string
}

/** What may still be unpacked; can be shared by several archives. */
export interface ZipBudget {
  files: number
  bytes: number
}

export interface ZipLimits {
  budget: ZipBudget
  /** Per file, unpacked. */
  bytes: number
  /** Which files to read. */
  wants: (name: string) => boolean
}

/** The message is a clause about the archive: "is not a ZIP archive". */
export class ZipError extends Error {
  override readonly name = 'ZipError'
}

/** By its first bytes; an empty archive begins with its end record. */
export const isZip = (bytes: Uint8Array): boolean =>
  bytes[0] === 0x50 && bytes[1] === 0x4b && (bytes[2] === 3 || bytes[2] === 5) && (bytes[3] === 4 || bytes[3] === 6)

/** In directory order (APPNOTE.TXT 6.3.10 §4.3). Throws `ZipError`. */
export const readZip = async (bytes: Uint8Array, { budget, bytes: maxBytes, wants }: ZipLimits): Promise<ZipFile[]> => {
  const entries = getDirectory(bytes).filter(({ name }) => !name.endsWith('/') && wants(name))
  if (entries.length > budget.files) throw new ZipError(`contains more than ${budget.files} files`)
  demand(areDisjoint(entries))
  const read: ZipFile[] = []
  for (const entry of entries) {
    if (budget.bytes <= 0) throw new ZipError('unpacks to more than is allowed')
    budget.files -= 1
    budget.bytes -= maxBytes // counted in full when unpacking fails
    const unpacked = await unpack(bytes, entry, maxBytes)
    budget.bytes += maxBytes - unpacked.length
    read.push({ name: entry.name, text: decodeFile(unpacked) })
  }
  return read
}

/** A small archive whose entries share the same packed bytes would unpack to gigabytes. */
const areDisjoint = (entries: readonly Entry[]): boolean => {
  const inOrder = entries.toSorted((a, b) => a.offset - b.offset)
  return inOrder.every(({ offset, packedBytes }, index) => {
    const next = inOrder[index + 1]
    return !next || offset + LOCAL_ENTRY_BYTES + packedBytes <= next.offset
  })
}

const END = 0x06054b50
const END_BYTES = 22
const LONGEST_COMMENT = 0xffff
const DIRECTORY_ENTRY = 0x02014b50
const DIRECTORY_ENTRY_BYTES = 46
const LOCAL_ENTRY = 0x04034b50
const LOCAL_ENTRY_BYTES = 30
const ENCRYPTED = 1
const STORED = 0
const DEFLATED = 8

interface Entry {
  name: string
  flags: number
  method: number
  packedBytes: number
  /** Offset of its local header. */
  offset: number
}

const getDirectory = (bytes: Uint8Array): Entry[] => {
  const view = getView(bytes)
  const end = getEnd(view)
  const count = view.getUint16(end + 10, true)
  let at = view.getUint32(end + 16, true)
  if (count === 0xffff || at === 0xffffffff) throw new ZipError('is a ZIP64 archive, which is not supported')
  return Array.from({ length: count }, () => {
    demand(at + DIRECTORY_ENTRY_BYTES <= bytes.length && view.getUint32(at, true) === DIRECTORY_ENTRY)
    const nameBytes = view.getUint16(at + 28, true)
    const start = at + DIRECTORY_ENTRY_BYTES
    const entry = {
      name: decodeUtf8(bytes.subarray(start, start + nameBytes)),
      flags: view.getUint16(at + 8, true),
      method: view.getUint16(at + 10, true),
      packedBytes: view.getUint32(at + 20, true),
      offset: view.getUint32(at + 42, true),
    }
    at = start + nameBytes + view.getUint16(at + 30, true) + view.getUint16(at + 32, true)
    return entry
  })
}

/** The end record, before a comment of any length. */
const getEnd = (view: DataView): number => {
  const last = view.byteLength - END_BYTES
  for (let at = last; at >= Math.max(0, last - LONGEST_COMMENT); at--) if (view.getUint32(at, true) === END) return at
  throw new ZipError('is not a complete ZIP archive')
}

const inflate = promisify(inflateRaw)

/** Off the event loop, because an archive may have many; at most `maxBytes`, whatever it states. */
const unpack = async (bytes: Uint8Array, entry: Entry, maxBytes: number): Promise<Uint8Array> => {
  const { name, flags, method, packedBytes, offset } = entry
  if (flags & ENCRYPTED) throw new ZipError(`is encrypted (${name})`)
  const view = getView(bytes)
  demand(offset + LOCAL_ENTRY_BYTES <= bytes.length && view.getUint32(offset, true) === LOCAL_ENTRY)
  const start = offset + LOCAL_ENTRY_BYTES + view.getUint16(offset + 26, true) + view.getUint16(offset + 28, true)
  const packed = bytes.subarray(start, start + packedBytes)
  demand(packed.length === packedBytes)
  if (packedBytes > maxBytes) throw new ZipError(`contains a file that is too large (${name})`)
  if (method === STORED) return packed
  if (method !== DEFLATED) throw new ZipError(`uses a compression that is not supported (${name})`)
  return inflate(packed, { maxOutputLength: maxBytes }).catch((cause: unknown) => {
    const isTooLarge = cause instanceof RangeError
    throw new ZipError(isTooLarge ? `contains a file that is too large (${name})` : `is damaged (${name})`, { cause })
  })
}

const demand = (isSound: boolean): void => {
  if (!isSound) throw new ZipError('is damaged')
}

const getView = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength)
