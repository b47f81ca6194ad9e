/** Limits how many long operations run at once; each must release its place. */

export interface Claim {
  /** The name of a limit, such as `stream guest 192.0.2.7`. */
  of: string
  /** Its maximum. */
  most: number
}

export class ConcurrencyLimits {
  readonly #taken = new Map<string, number>()

  /** Takes one place of each claim, or none and returns null. Returns the release function, safe to call repeatedly. */
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
