/** Text as UTF-8 and back, by one encoder and one decoder; files that people hand over may be UTF-16, too. */

export const encodeUtf8 = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text)

/** Without a byte order mark; what is no UTF-8 becomes U+FFFD. */
export const decodeUtf8 = (bytes: Uint8Array): string => decoder.decode(bytes)

/** By its byte order mark, which is left out; without one as UTF-8. PowerShell's `>` writes UTF-16. */
export const decodeFile = (bytes: Uint8Array): string => {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes)
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder('utf-16be').decode(bytes)
  return decodeUtf8(bytes)
}

/** The value of a header, which comes as one character a byte, as the UTF-8 that it is; as it came where it is none. */
export const headerText = (value: string): string => {
  const text = Buffer.from(value, 'latin1').toString() // a byte order mark is a part of it
  return text.includes('\uFFFD') ? value : text
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()
