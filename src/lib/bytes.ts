/**
 * What only a `Buffer` can do, for bytes that are none: to see them as one the runtime makes an `ArrayBuffer` for both, which
 * takes five times as long as the search (measured).
 */

/** The first place of `sought` at `from` or behind it; −1 when there is none. */
export const placeOf = (bytes: Uint8Array, sought: Uint8Array, from = 0): number =>
  Buffer.prototype.indexOf.call(bytes, sought, from)

/** One character a byte. */
export const asLatin1 = (bytes: Uint8Array, from: number, to: number): string =>
  Buffer.prototype.toString.call(bytes, 'latin1', from, to)
