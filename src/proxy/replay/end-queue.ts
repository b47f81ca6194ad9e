/** Items by the time they end, soonest first: a binary heap. */

export class EndQueue<T> {
  readonly #heap: { at: number; item: T }[] = []

  push(at: number, item: T): void {
    const heap = this.#heap
    let place = heap.push({ at, item }) - 1
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (heap[parent]!.at <= at) break // a place in the heap, as below
      this.#swap(place, parent)
      place = parent
    }
  }

  /** Removes and returns the item that ended first, if it ended by `at`. */
  endedBy(at: number): T | null {
    const heap = this.#heap
    const first = heap[0]
    if (!first || first.at > at) return null
    const last = heap.pop()!
    if (heap.length > 0) {
      heap[0] = last
      this.#sink()
    }
    return first.item
  }

  #sink(): void {
    const heap = this.#heap
    for (let place = 0; ; ) {
      const left = 2 * place + 1
      const right = left + 1
      if (left >= heap.length) return
      const child = right < heap.length && heap[right]!.at < heap[left]!.at ? right : left
      if (heap[place]!.at <= heap[child]!.at) return
      this.#swap(place, child)
      place = child
    }
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap
    ;[heap[a], heap[b]] = [heap[b]!, heap[a]!]
  }
}
