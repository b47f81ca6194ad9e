/** How many values a JSON text holds, told from its bytes: in memory each takes up to thirty times its place in the text. */
import { QUOTE } from './json-depth.ts'

const BACKSLASH = 0x5c

/**
 * Whether commas and opening brackets together are more than `limit`; what is no JSON is counted alike. Of text that has
 * many values it reads the beginning only.
 */
export function holdsMoreValuesThan(json: Uint8Array, limit: number): boolean {
  if (json.length <= limit) return false
  let values = 0
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (byte === QUOTE) at = closingQuote(json, at)
    else if (byte === 0x2c || byte === 0x5b || byte === 0x7b) {
      values++
      if (values > limit) return true
    }
  }
  return false
}

/** The first quote mostly is it. Behind an escape byte by byte: a search for each takes seconds where there are millions (measured). */
function closingQuote(json: Uint8Array, start: number): number {
  const first = json.indexOf(QUOTE, start + 1)
  if (first === -1) return json.length
  if (json[first - 1] !== BACKSLASH) return first
  let at = start + 1
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1
  return at
}
