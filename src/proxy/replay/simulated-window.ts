/** One window of a simulated account: its credits, their use, and its resets. */
import type { UsageWindow } from '../../model/accounts/usage-windows.ts'

export interface ReplayWindow {
  credits: number
  lengthMs: number
  /** At the start of the replay. */
  usedCredits: number
  /** ms since epoch. Null: a five-hour window starts with its first request, a long one with the replay. */
  resetAt: number | null
}

/** The windows that were reset. */
export interface WindowTotal {
  credits: number
  unused: number
}

export class SimulatedWindow {
  /** As ChatGPT would report it. */
  readonly view: UsageWindow
  readonly #credits: number
  readonly #lengthMs: number
  readonly #total: WindowTotal
  #used: number

  constructor({ credits, lengthMs, usedCredits }: ReplayWindow, resetAt: number | null, total: WindowTotal) {
    this.#credits = credits
    this.#lengthMs = lengthMs
    this.#used = usedCredits
    this.#total = total
    this.view = { usedPercent: 0, windowMinutes: lengthMs / 60_000, resetAt }
    this.use(0)
  }

  get left(): number {
    return this.#credits - this.#used
  }

  /** An unused window serves any request, however large. */
  hasRoom(credits: number): boolean {
    return Math.min(credits, this.#credits) <= this.left
  }

  use(credits: number): void {
    this.#used += Math.min(credits, this.left)
    this.view.usedPercent = Math.min(100, (100 * this.#used) / this.#credits)
  }

  open(at: number): void {
    this.view.resetAt ??= at + this.#lengthMs
  }

  closeAt(at: number): void {
    if (this.view.resetAt === null || this.view.resetAt > at) return
    this.#reset()
    this.view.resetAt = null
  }

  /** Assumed: weeks follow each other without a gap. */
  repeatUntil(at: number): void {
    for (let resetAt = this.view.resetAt; resetAt !== null && resetAt <= at; resetAt += this.#lengthMs) {
      this.#reset()
      this.view.resetAt = resetAt + this.#lengthMs
    }
  }

  #reset(): void {
    this.#total.credits += this.#credits
    this.#total.unused += this.left
    this.#used = 0
    this.view.usedPercent = 0
  }
}
