/**
 * Limits nesting and number of values in JSON text, from its bytes: parsing deep nesting takes a second, and each value
 * takes up to thirty times its size in memory.
 */

export const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Whether arrays and objects nest deeper than `limit`. Takes about a third of the time of parsing; `json` must be valid. */
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
 * Whether there are more than `limit` commas and opening brackets; works on invalid JSON too. Stops reading once over
 * the limit.
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
 * The index of the quote that ends the string at `start`, usually the first. After an escape it scans byte by byte:
 * searching for each quote takes seconds with millions of them (Bun 1.4.5).
 */
export function endOfString(json: Uint8Array, start: number): number {
  const first = json.indexOf(QUOTE, start + 1)
  if (first === -1) return json.length
  if (json[first - 1] !== BACKSLASH) return first
  let at = start + 1
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1
  return at
}
