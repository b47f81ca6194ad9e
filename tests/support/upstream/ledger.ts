/** Records the requests of the stand-in upstream, what was odd about them, and how many streams are open. */

export type ReceivedRequest = {
  at: number
  method: string
  path: string
  query: Record<string, string>
  /** The query string unchanged, with its question mark. */
  search: string
  /** The ChatGPT account id whose token was presented, once known. */
  account: string | null
  /** Lower-cased names. */
  headers: Record<string, string>
  bodyText: string
  /** The body unchanged. Not enumerable, so that a record can be written as JSON. */
  readonly bytes: Uint8Array
  /** The parsed body, or `null` when it is not JSON. */
  body: unknown
  status: number | null
  /** Events of the stream that the client has pulled so far. */
  eventsSent: number
  /** The client disconnected before the response was complete. */
  aborted: boolean
  /** Number of the handshake whose socket it came on; `null` over HTTP. */
  connection: number | null
  /** The whole answer was taken, for a stream up to its terminal event or its planned end. */
  finished: boolean
}

/** One attempt to open a socket, and what became of the connection. */
export type ReceivedHandshake = {
  at: number
  method: string
  path: string
  /** The whole address. */
  url: string
  /** Counts from 1. */
  connection: number
  /** The ChatGPT account id whose token was presented, once known. */
  account: string | null
  /** Lower-cased names. */
  headers: Record<string, string>
  /** 101 once open. */
  status: number | null
  /** The client disconnected before the handshake was answered. */
  aborted: boolean
  /** How the connection ended. */
  closed: { code: number; reason: string } | null
}

export type Stats = {
  openStreams: number
  peakStreams: number
  streams: number
  requests: number
  oddities: number
  openSockets: number
  handshakes: number
}

export class Ledger {
  readonly requests: ReceivedRequest[] = []
  readonly handshakes: ReceivedHandshake[] = []
  readonly oddities: string[] = []
  readonly #keep: number
  #open = 0
  #peak = 0
  #streams = 0
  #received = 0
  #shaken = 0
  #openSockets = 0

  /** `keep` is how many requests are remembered; older ones are forgotten first. */
  constructor(keep: number) {
    this.#keep = keep
  }

  receive(request: ReceivedRequest): void {
    this.#received += 1
    this.#remember(this.requests, request)
  }

  receiveHandshake(handshake: ReceivedHandshake): void {
    this.#shaken += 1
    this.#remember(this.handshakes, handshake)
  }

  #remember<Entry>(list: Entry[], entry: Entry): void {
    if (this.#keep === 0) return
    list.push(entry)
    if (list.length > this.#keep) list.shift()
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

  /** Counts a socket as open; call the returned function once when it has closed. */
  openSocket(): () => void {
    this.#openSockets += 1
    return () => {
      this.#openSockets -= 1
    }
  }

  get openSockets(): number {
    return this.#openSockets
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
      openSockets: this.#openSockets,
      handshakes: this.#shaken,
    }
  }

  /** Forgets everything except the streams and sockets that are open now. */
  reset(): void {
    this.requests.length = 0
    this.handshakes.length = 0
    this.oddities.length = 0
    this.#peak = this.#open
    this.#streams = 0
    this.#received = 0
    this.#shaken = 0
  }
}
