/** UTF-8 encoding and decoding; uploaded files may also be UTF-16. */

export const encodeUtf8 = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text)

/** Without a byte order mark; invalid UTF-8 becomes U+FFFD. */
export const decodeUtf8 = (bytes: Uint8Array): string => decoder.decode(bytes)

/** By byte order mark, which is removed; otherwise UTF-8. PowerShell's `>` writes UTF-16. */
export const decodeFile = (bytes: Uint8Array): string => {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes)
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder('utf-16be').decode(bytes)
  return decodeUtf8(bytes)
}

/** Decodes a header value, received as one character per byte, as UTF-8; returns it unchanged if invalid. */
export const headerText = (value: string): string => {
  const text = Buffer.from(value, 'latin1').toString() // a byte order mark belongs to the value
  return text.includes('\uFFFD') ? value : text
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()
