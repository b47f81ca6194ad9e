/** How many long things may run at once: whoever takes a place gives it back when it ends. */

export interface Claim {
  /** What the places belong to, as `stream guest 192.0.2.7`. */
  of: string
  /** How many there are. */
  most: number
}

export class Seats {
  readonly #taken = new Map<string, number>()

  /** One place of each claim, or null when one of them has none left. Returns the way out, which may be taken more than once. */
  take(claims: readonly Claim[]): (() => void) | null {
    if (claims.some(({ of, most }) => this.taken(of) >= most)) return null
    for (const { of } of claims) this.#add(of, 1)
    let isTaken = true
    return () => {
      if (isTaken) for (const { of } of claims) this.#add(of, -1)
      isTaken = false
    }
  }

  taken(of: string): number {
    return this.#taken.get(of) ?? 0
  }

  #add(of: string, step: 1 | -1): void {
    const count = this.taken(of) + step
    if (count > 0) this.#taken.set(of, count)
    else this.#taken.delete(of)
  }
}
