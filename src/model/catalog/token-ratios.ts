/**
 * The ratio of actual to estimated input tokens, per model. Kept in memory, so a new process starts without correction.
 */

/** The weight of the newest request. */
const WEIGHT = 0.1
/** The limits of the ratio, so that one unusual request cannot distort the estimates. */
const BOUNDS = { least: 0.25, most: 4 }

export class TokenRatios {
  readonly #ratios = new Map<string, number>()

  learn(model: string, { estimate, actual }: { estimate: number; actual: number }): void {
    if (estimate <= 0 || actual <= 0) return
    const ratio = Math.min(BOUNDS.most, Math.max(BOUNDS.least, actual / estimate))
    const before = this.#ratios.get(model)
    this.#ratios.set(model, before === undefined ? ratio : before + WEIGHT * (ratio - before))
  }

  corrected(model: string, estimate: number): number {
    return Math.max(1, Math.round(estimate * (this.#ratios.get(model) ?? 1)))
  }
}
