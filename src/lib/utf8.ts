/** Text as UTF-8 and back, by one encoder and one decoder. */

export const encodeUtf8 = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text)

/** Without a byte order mark; what is no UTF-8 becomes U+FFFD. */
export const decodeUtf8 = (bytes: Uint8Array): string => decoder.decode(bytes)

const encoder = new TextEncoder()
const decoder = new TextDecoder()
