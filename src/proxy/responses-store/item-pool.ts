/** Item texts kept once each, however many stored responses hold them: a client that resends its history adds only what is new. */

export interface StoredItem {
  /** The item as JSON, exactly as it was sent upstream or received. */
  readonly text: string
  readonly bytes: number
  holders: number
}

/** What an item costs beside its text: the object, the header of the string, its place in the map (`bench/README.md`, Bun 1.4.5). */
const ITEM_OVERHEAD_BYTES = 240

export class ItemPool {
  readonly #items = new Map<string, StoredItem>()
  #bytes = 0

  /** Memory of all items. */
  get bytes(): number {
    return this.#bytes
  }

  get size(): number {
    return this.#items.size
  }

  /** The item with this text, held once more. Each `hold` needs one `release`. */
  hold(text: string): StoredItem {
    const known = this.#items.get(text)
    if (known) {
      known.holders++
      return known
    }
    const item = { text, bytes: textBytes(text) + ITEM_OVERHEAD_BYTES, holders: 1 }
    this.#items.set(text, item)
    this.#bytes += item.bytes
    return item
  }

  release(item: StoredItem): void {
    if (--item.holders > 0) return
    this.#items.delete(item.text)
    this.#bytes -= item.bytes
  }
}

/** Strings take one byte per character, or two if any character needs it; any non-ASCII string is counted with two. */
export const textBytes = (text: string): number =>
  Buffer.byteLength(text) === text.length ? text.length : 2 * text.length
