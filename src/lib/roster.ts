/**
 * A set for items that come and go with every turn. The runtime's `Set` and `Map` keep removed entries until a full
 * collection: each outgrown table references its entries and its successor (Bun 1.4.5: of 400,000 objects that came and
 * went 16 at a time, ten times as many survived a small collection), and with them everything a turn references.
 */
export class Roster<T> {
  readonly #items: T[] = []

  get size(): number {
    return this.#items.length
  }

  add(item: T): void {
    if (!this.#items.includes(item)) this.#items.push(item)
  }

  /** May reorder the others. */
  delete(item: T): void {
    const at = this.#items.indexOf(item)
    if (at === -1) return
    const last = this.#items.pop() as T // as: there is one
    if (at < this.#items.length) this.#items[at] = last
  }

  /** Iterates over a snapshot, so changes during iteration have no effect. */
  [Symbol.iterator](): Iterator<T> {
    return this.#items.slice().values()
  }
}
