/** Writes small ZIP archives: files are stored, not compressed (APPNOTE.TXT 6.3.10 §4.3). */
import { crc32 } from 'node:zlib'

const UTF8_NAMES = 0x800
const VERSION = 20

/** `files`: fewer than 65,535, and less than 4 GB together. */
export const getZip = (files: readonly { name: string; text: string }[]): Uint8Array<ArrayBuffer> => {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, text } of files) {
    const [path, content] = [Buffer.from(name), Buffer.from(text)]
    const facts = getFacts(path, content)
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), facts, path, content])
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offset, 10)
    directory.push(Buffer.from('PK\x01\x02', 'latin1'), MADE_BY, facts, place, path)
    locals.push(local)
    offset += local.length
  }
  const index = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 0, 'latin1')
  end.writeUInt16LE(files.length, 8)
  end.writeUInt16LE(files.length, 10)
  end.writeUInt32LE(index.length, 12)
  end.writeUInt32LE(offset, 16)
  return new Uint8Array(Buffer.concat([...locals, index, end]))
}

const MADE_BY = Buffer.from([VERSION, 0])

/** The fields common to both headers of a file; the last two bytes are the empty extra field's length. */
const getFacts = (name: Buffer, content: Buffer): Buffer => {
  const facts = Buffer.alloc(26)
  facts.writeUInt16LE(VERSION, 0)
  facts.writeUInt16LE(UTF8_NAMES, 2)
  facts.writeUInt16LE(NO_DATE, 8)
  facts.writeUInt32LE(crc32(content), 10)
  facts.writeUInt32LE(content.length, 14)
  facts.writeUInt32LE(content.length, 18)
  facts.writeUInt16LE(name.length, 22)
  return facts
}

/** 1980-01-01, the earliest date of the format. */
const NO_DATE = 0x21
