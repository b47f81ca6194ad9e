/** Reads the top-level `usage` of a JSON document while it passes through in pieces, so that an answer of many MiB is never held. */
import { isObject, type JsonObject, parseJson } from '../../lib/json.ts'
import { decodeUtf8 } from '../../lib/utf8.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPENERS: ReadonlySet<number> = new Set([0x7b, 0x5b])
const CLOSERS: ReadonlySet<number> = new Set([0x7d, 0x5d])
const NAME = 'usage'
/** Far more than any usage object. */
const MAX_USAGE_BYTES = 16 * 1024

export class UsageReader {
  #depth = 0
  #isInString = false
  #isEscaped = false
  /** The last string of the top-level object, until it is longer than the name that is looked for. */
  #text = ''
  /** What follows belongs to `usage`. */
  #value: number[] | null = null
  #usage: JsonObject | null = null

  /** Null until the document has passed, and where it has none. */
  get usage(): JsonObject | null {
    return this.#usage
  }

  push(bytes: Uint8Array): void {
    let at = 0
    while (at < bytes.length) {
      if (this.#isInString) at = this.#string(bytes, at)
      else this.#structure(bytes[at++]!) // at < length
    }
  }

  /** Returns where the string ends, or the end of the bytes. Long strings, as images are, are searched and not walked. */
  #string(bytes: Uint8Array, from: number): number {
    if (this.#isEscaped) {
      this.#isEscaped = false
      this.#keep(bytes, from, from + 1)
      return from + 1
    }
    const quote = bytes.indexOf(QUOTE, from)
    const end = quote === -1 ? bytes.length : quote
    const backslash = bytes.subarray(from, end).indexOf(BACKSLASH)
    if (backslash !== -1) {
      this.#isEscaped = true
      this.#keep(bytes, from, from + backslash + 1)
      return from + backslash + 1
    }
    this.#keep(bytes, from, end)
    if (quote === -1) return end
    this.#isInString = false
    this.#keep(bytes, quote, quote + 1)
    return quote + 1
  }

  #structure(byte: number): void {
    if (byte === QUOTE) {
      this.#isInString = true
      this.#text = ''
    } else if (OPENERS.has(byte)) this.#depth++
    else if (CLOSERS.has(byte)) this.#depth--
    else if (byte === COLON && this.#depth === 1 && this.#text === `${NAME}"`) {
      this.#value = []
      return
    }
    if (this.#value === null) return
    if (this.#depth > 1 || CLOSERS.has(byte)) this.#value.push(byte)
    if (this.#depth === 1 && this.#value.length > 0) this.#finish()
    else if (this.#depth === 0 || this.#value.length > MAX_USAGE_BYTES) this.#value = null
  }

  #keep(bytes: Uint8Array, from: number, to: number): void {
    if (this.#value !== null && this.#value.length <= MAX_USAGE_BYTES) {
      for (let at = from; at < to; at++) this.#value.push(bytes[at]!) // at < length
    } else if (this.#depth === 1 && this.#text.length <= NAME.length)
      this.#text += decodeUtf8(bytes.subarray(from, Math.min(to, from + NAME.length + 2)))
  }

  #finish(): void {
    const value = parseJson(decodeUtf8(new Uint8Array(this.#value ?? [])))
    if (isObject(value)) this.#usage = value
    this.#value = null
  }
}
