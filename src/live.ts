/** Tells open dashboards what has changed, in words and without content: at most one message a second. */
import type { Topic } from '../db/commit.ts'
import type { Clock } from './lib/clock.ts'
import { MINUTE_MS } from './lib/durations.ts'

/**
 * `usage`: numbers of accounts moved; `logs`: turns have ended; `minute`: the figures of another minute are complete;
 * `health`: whether requests are answered has changed. The others are changes that users made.
 */
export const LIVE_TOPICS = ['accounts', 'usage', 'keys', 'settings', 'people', 'logs', 'minute', 'health'] as const
export type LiveTopic = (typeof LIVE_TOPICS)[number]

export interface Change {
  /** Unique while the process lives, ascending; the `id` of the event. */
  id: string
  topics: readonly LiveTopic[]
}

interface Listener {
  changed: (change: Change) => void
  /** Every eight seconds: shorter than any proxy or the runtime waits for a silent stream. */
  beat: () => void
  /** Somebody's rights or session may have ended. */
  check: () => void
}

interface LiveDeps {
  clock: Clock
  /** Anything that differs whenever that does. */
  health: () => string
}

const TICK_MS = 1000
const TICKS_A_BEAT = 8
/** Seconds between two messages of a topic; numbers that move with every turn are worth less than a change. */
const EVERY_SECONDS: Partial<Record<LiveTopic, number>> = { usage: 5 }
/** Of more turns than this nobody reads the lines, and fetching them takes time from the turns. */
const MOST_READ = 100
const CROWDED_SECONDS = 5

const OF_COMMIT: Partial<Record<Topic, LiveTopic>> = {
  accounts: 'accounts',
  keys: 'keys',
  settings: 'settings',
  firewall: 'settings',
  people: 'people',
}
/** After these a session may be over, or may do less. */
const CHECKED: readonly Topic[] = ['sessions', 'people', 'settings']

/** One timer for all listeners, and none while there are none. */
export class LiveHub {
  readonly #deps: LiveDeps
  /** Each with the tick of its heartbeat, so that they are not all checked at once. */
  readonly #listeners = new Map<Listener, number>()
  readonly #pending = new Set<LiveTopic>()
  /** In which message each topic was told last. */
  readonly #toldIn = new Map<LiveTopic, number>()
  readonly #epoch: string
  #number = 0
  #ticks = 0
  /** Turns that `logs` was not told of yet. */
  #untold = 0
  /** What was seen last of what nobody announces; null: nothing yet, and nothing is compared. */
  #seen: { minute: number; health: string } | null = null
  #cancelTick: (() => void) | null = null

  constructor(deps: LiveDeps) {
    this.#deps = deps
    this.#epoch = deps.clock.now().toString(36)
  }

  /** For a page, before anything of it is read: `since` it is what its stream has to tell first. */
  mark(): string {
    this.#look()
    return this.lastId
  }

  /** Of the last message, for who joins now. */
  get lastId(): string {
    return `${this.#epoch}.${this.#number}`
  }

  /** What changed after the message `id`; everything where that is not known any more. */
  since(id: string): readonly LiveTopic[] {
    const [epoch, number] = id.split('.')
    if (epoch !== this.#epoch) return LIVE_TOPICS
    return LIVE_TOPICS.filter((topic) => (this.#toldIn.get(topic) ?? 0) > Number(number))
  }

  /** Touches memory only. Told with the next second, or kept for who comes back. */
  note(topic: LiveTopic): void {
    if (this.#listeners.size > 0) this.#pending.add(topic)
    else this.#toldIn.set(topic, ++this.#number)
  }

  /** Turns have ended: told with the next second, and every five seconds where that is more than can be read. */
  ended(turns: number): void {
    if (this.#listeners.size > 0) this.#untold += turns
    this.note('logs')
  }

  /** For `onChange`: translates what a commit announced. */
  committed(topics: ReadonlySet<Topic>): void {
    for (const topic of topics) {
      const told = OF_COMMIT[topic]
      if (told) this.note(told)
    }
    if (!CHECKED.some((topic) => topics.has(topic))) return
    // One after another: each reads the database, and streams of answers wait meanwhile.
    for (const listener of this.#listeners.keys()) this.#deps.clock.after(0, () => this.#check(listener))
  }

  /** Returns the way out, which may be taken more than once. */
  join(listener: Listener): () => void {
    if (this.#cancelTick === null) this.#start()
    this.#listeners.set(listener, this.#ticks % TICKS_A_BEAT)
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.stop()
    }
  }

  stop(): void {
    this.#cancelTick?.()
    this.#cancelTick = null
    this.#untold = 0
  }

  #start(): void {
    this.#look()
    this.#cancelTick = this.#deps.clock.every(TICK_MS, () => this.#tick())
  }

  #tick(): void {
    this.#ticks++
    this.#look()
    this.#tell()
    for (const [listener, phase] of this.#listeners) {
      if (this.#ticks % TICKS_A_BEAT !== phase) continue
      listener.beat()
      this.#check(listener)
    }
  }

  #look(): void {
    const was = this.#seen
    const now = { minute: this.#minuteNow(), health: this.#deps.health() }
    this.#seen = now
    if (was === null) return
    if (now.minute !== was.minute) this.note('minute')
    if (now.health !== was.health) this.note('health')
  }

  #tell(): void {
    const topics = [...this.#pending].filter((topic) => this.#ticks % this.#secondsOf(topic) === 0)
    if (topics.length === 0) return
    if (topics.includes('logs')) this.#untold = 0
    this.#number++
    for (const topic of topics) {
      this.#pending.delete(topic)
      this.#toldIn.set(topic, this.#number)
    }
    for (const listener of [...this.#listeners.keys()]) listener.changed({ id: this.lastId, topics })
  }

  #secondsOf(topic: LiveTopic): number {
    if (topic === 'logs' && this.#untold > MOST_READ) return CROWDED_SECONDS
    return EVERY_SECONDS[topic] ?? 1
  }

  #check(listener: Listener): void {
    if (this.#listeners.has(listener)) listener.check()
  }

  #minuteNow(): number {
    return Math.floor(this.#deps.clock.now() / MINUTE_MS)
  }
}
