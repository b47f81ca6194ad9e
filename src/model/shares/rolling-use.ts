/** How much was used in a rolling window, summed in steps to save memory. */
export class RollingUse {
  readonly #windowMs: number
  readonly #stepMs: number
  /** The amounts by step number. */
  readonly #steps = new Map<number, number>()

  constructor({ windowMs, stepMs }: { windowMs: number; stepMs: number }) {
    this.#windowMs = windowMs
    this.#stepMs = stepMs
  }

  add(at: number, amount: number): void {
    const step = Math.floor(at / this.#stepMs)
    this.#steps.set(step, (this.#steps.get(step) ?? 0) + amount)
  }

  /** The amount used in the window. A step stops counting when its start is too old, so the total is never too high. */
  total(now: number): number {
    let sum = 0
    for (const [step, amount] of this.#steps) {
      if (this.#endOf(step) <= now) this.#steps.delete(step)
      else sum += amount
    }
    return sum
  }

  /** When the total falls below `most` (ms since epoch) if nothing is added. Null if it never does. */
  fallsBelow(most: number, now: number): number | null {
    if (most <= 0) return null
    let sum = this.total(now)
    if (sum < most) return now
    for (const step of [...this.#steps.keys()].sort((a, b) => a - b)) {
      sum -= this.#steps.get(step) ?? 0
      if (sum < most) return this.#endOf(step)
    }
    return null
  }

  #endOf(step: number): number {
    return step * this.#stepMs + this.#windowMs
  }
}
