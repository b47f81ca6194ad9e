/** Remembers what the stand-in upstream received, what was odd about it, and how many streams are open. */

export type ReceivedRequest = {
  at: number
  method: string
  path: string
  query: Record<string, string>
  /** The ChatGPT account id whose token was presented, once known. */
  account: string | null
  /** Lower-cased names. */
  headers: Record<string, string>
  bodyText: string
  /** The parsed body, or `null` when it is not JSON. */
  body: unknown
  status: number | null
  /** Events of the stream that the caller has asked for so far. */
  eventsSent: number
  /** The caller left before the answer was complete. */
  aborted: boolean
  /** The whole answer was taken, for a stream up to its terminal event or its planned end. */
  finished: boolean
}

export type Stats = { openStreams: number; peakStreams: number; streams: number; requests: number; oddities: number }

export class Ledger {
  readonly requests: ReceivedRequest[] = []
  readonly oddities: string[] = []
  readonly #keep: number
  #open = 0
  #peak = 0
  #streams = 0
  #received = 0

  /** `keep` is how many requests are remembered; older ones are forgotten first. */
  constructor(keep: number) {
    this.#keep = keep
  }

  receive(request: ReceivedRequest): void {
    this.#received += 1
    if (this.#keep === 0) return
    this.requests.push(request)
    if (this.requests.length > this.#keep) this.requests.shift()
  }

  /** Each distinct sentence is kept once, so a soak that repeats a mistake does not fill the memory. */
  odd(sentence: string): void {
    if (!this.oddities.includes(sentence)) this.oddities.push(sentence)
  }

  /** Counts a stream as open; call the returned function exactly when it ends, further calls do nothing. */
  openStream(): () => void {
    this.#open += 1
    this.#streams += 1
    this.#peak = Math.max(this.#peak, this.#open)
    let open = true
    return () => {
      if (open) this.#open -= 1
      open = false
    }
  }

  get openStreams(): number {
    return this.#open
  }

  stats(): Stats {
    return {
      openStreams: this.#open,
      peakStreams: this.#peak,
      streams: this.#streams,
      requests: this.#received,
      oddities: this.oddities.length,
    }
  }

  /** Forgets everything except the streams that are open now. */
  reset(): void {
    this.requests.length = 0
    this.oddities.length = 0
    this.#peak = this.#open
    this.#streams = 0
    this.#received = 0
  }
}
