/** Writes ZIP archives for tests, including invalid ones. */
import { crc32, deflateRawSync } from 'node:zlib'

export interface Packed {
  name: string
  text: string | Uint8Array
  method?: 'stored' | 'deflated'
  /** General purpose bits; 0x800, UTF-8 names, unless told. */
  flags?: number
}

export const getZip = (files: readonly Packed[], comment = ''): Uint8Array<ArrayBuffer> => {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, text, method = 'deflated', flags = 0x800 } of files) {
    const plain = Buffer.from(text)
    const packed = method === 'stored' ? plain : deflateRawSync(plain)
    const facts = Buffer.alloc(26)
    facts.writeUInt16LE(20, 0)
    facts.writeUInt16LE(flags, 2)
    facts.writeUInt16LE(method === 'stored' ? 0 : 8, 4)
    facts.writeUInt32LE(crc32(plain), 10)
    facts.writeUInt32LE(packed.length, 14)
    facts.writeUInt32LE(plain.length, 18)
    facts.writeUInt16LE(Buffer.byteLength(name), 22)
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(offset, 10)
    directory.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), facts, tail, Buffer.from(name))
    const local = [Buffer.from('PK\x03\x04', 'latin1'), facts, Buffer.from(name), packed]
    parts.push(...local)
    offset += local.reduce((sum, { length }) => sum + length, 0)
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 0, 'latin1')
  end.writeUInt16LE(files.length, 8)
  end.writeUInt16LE(files.length, 10)
  end.writeUInt32LE(size, 12)
  end.writeUInt32LE(offset, 16)
  end.writeUInt16LE(comment.length, 20)
  return new Uint8Array(Buffer.concat([...parts, ...directory, end, Buffer.from(comment)]))
}
