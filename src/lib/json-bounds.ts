/**
 * How deep a JSON text nests and how many values it holds, told from its bytes: building or writing a value that nests too
 * deep costs a second, and in memory each value takes up to thirty times its place in the text.
 */

export const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Whether arrays and objects nest more than `limit` deep. About a third of the time of parsing; `json` must be valid. */
export function nestsDeeperThan(json: Uint8Array, limit: number): boolean {
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (byte === QUOTE) at = endOfString(json, at)
    else if (byte === 0x5b || byte === 0x7b) {
      depth++
      if (depth > limit) return true
    } else if (byte === 0x5d || byte === 0x7d) depth--
  }
  return false
}

/**
 * Whether commas and opening brackets together are more than `limit`; what is no JSON is counted alike. Of text that has
 * many values it reads the beginning only.
 */
export function holdsMoreValuesThan(json: Uint8Array, limit: number): boolean {
  if (json.length <= limit) return false
  let values = 0
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (byte === QUOTE) at = endOfString(json, at)
    else if (byte === 0x2c || byte === 0x5b || byte === 0x7b) {
      values++
      if (values > limit) return true
    }
  }
  return false
}

/**
 * The index of the quote that closes the string begun at `start`. The first one mostly is it. Behind an escape byte by byte:
 * a search for each quote takes seconds where there are millions (measured).
 */
export function endOfString(json: Uint8Array, start: number): number {
  const first = json.indexOf(QUOTE, start + 1)
  if (first === -1) return json.length
  if (json[first - 1] !== BACKSLASH) return first
  let at = start + 1
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1
  return at
}
