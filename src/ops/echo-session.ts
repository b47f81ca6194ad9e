/** A socket that echoes one message and closes, for the doctor's measurement. */
import type { Clock } from '../lib/clock.ts'

type EchoSocket = Pick<Bun.ServerWebSocket<unknown>, 'send' | 'close'>

const MAX_CHARS = 1024
const LIFE_MS = 5000

export class EchoSession {
  readonly #clock: Clock
  #ws: EchoSocket | null = null
  #cancelEnd: (() => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  opened(ws: EchoSocket): void {
    this.#ws = ws
    this.#cancelEnd = this.#clock.after(LIFE_MS, () => ws.close(1000))
  }

  received(data: string | Buffer): void {
    this.#ws?.send(String(data).slice(0, MAX_CHARS))
    this.#ws?.close(1000)
  }

  drained(): void {}

  pinged(): void {}

  ponged(): void {}

  closed(): void {
    this.#cancelEnd?.()
  }

  failed(): void {
    this.#ws?.close(1011)
  }
}
