/** How many values a JSON text holds, told from its bytes: in memory each takes up to thirty times its place in the text. */
import { endOfString, QUOTE } from './json-depth.ts'

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
