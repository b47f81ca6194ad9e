/** Finds stored items by name, an item id or a call id, for as long as any stored response uses the name. */
import type { ItemPool, StoredItem } from './item-pool.ts'

/** What a name costs beside its texts (`bench/README.md`, Bun 1.4.5). */
const NAME_OVERHEAD_BYTES = 320
/** A place in the set of a response; the name itself is shared. */
const NAME_POINTER_BYTES = 24

interface Named<Holder> {
  items: readonly StoredItem[]
  /** The newest response that has the item, until that one is split. */
  source: Holder | null
  holders: number
}

export class ItemNames<Holder extends { names: Set<string> }> {
  readonly #pool: ItemPool
  readonly #named = new Map<string, Named<Holder>>()
  #bytes = 0

  constructor(pool: ItemPool) {
    this.#pool = pool
  }

  /** Memory of the names; that of the items is counted by their pool. */
  get bytes(): number {
    return this.#bytes
  }

  items(name: string): readonly StoredItem[] {
    return this.#named.get(name)?.items ?? NO_ITEMS
  }

  /** The response whose text still has the item. */
  source(name: string): Holder | null {
    return this.#named.get(name)?.source ?? null
  }

  /** Names an item that is still in the text of `holder`. */
  addSource(holder: Holder, name: string): void {
    const named = this.#named.get(name)
    if (!named) this.#add(name, { items: NO_ITEMS, source: holder, holders: 0 })
    else if (named.source) named.source = holder
    this.use(holder, name)
  }

  /** `holder` was split: the name refers to the item itself from now on. */
  resolve(holder: Holder, name: string, item: StoredItem): void {
    const named = this.#named.get(name)
    if (named?.source !== holder) return
    named.items = [this.#pool.hold(item.text)]
    named.source = null
  }

  addItems(holder: Holder, name: string, texts: readonly string[]): void {
    if (!this.#named.has(name))
      this.#add(name, { items: texts.map((text) => this.#pool.hold(text)), source: null, holders: 0 })
    this.use(holder, name)
  }

  /** Keeps a name, if it is known, for as long as `holder` is stored. */
  use(holder: Holder, name: string): void {
    const named = this.#named.get(name)
    if (!named || holder.names.has(name)) return
    named.holders++
    holder.names.add(name)
    this.#bytes += NAME_POINTER_BYTES
  }

  /** Whether others use a name for an item that only `holder` has. */
  isOnlySource(holder: Holder): boolean {
    return holder.names.values().some((name) => {
      const { source, holders } = this.#named.get(name)!
      return source === holder && holders > 1
    })
  }

  /** Forgets what only `holder` uses. It can use no names afterwards. */
  release(holder: Holder): void {
    for (const name of holder.names) this.#drop(name)
    holder.names = NO_NAMES
  }

  #add(name: string, named: Named<Holder>): void {
    this.#named.set(name, named)
    this.#bytes += NAME_OVERHEAD_BYTES
  }

  #drop(name: string): void {
    const named = this.#named.get(name)!
    this.#bytes -= NAME_POINTER_BYTES
    if (--named.holders > 0) return
    this.#named.delete(name)
    this.#bytes -= NAME_OVERHEAD_BYTES
    for (const item of named.items) this.#pool.release(item)
  }
}

const NO_ITEMS: readonly StoredItem[] = []
const NO_NAMES: Set<string> = new Set()
