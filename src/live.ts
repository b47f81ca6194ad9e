/** Notifies open dashboards of changes, by topic without content, at most once a second. */
import type { Topic } from '../db/commit.ts'
import type { Clock } from './lib/clock.ts'
import { MINUTE_MS } from './lib/durations.ts'

/**
 * `usage`: account numbers changed; `logs`: requests ended; `minute`: another minute's totals are complete; `health`:
 * readiness or an outage changed; `automations`: one was changed, or a run went on; `alerts`: one was raised, sent or recovered. The others are changes by users.
 */
export const LIVE_TOPICS = [
  'accounts',
  'usage',
  'keys',
  'settings',
  'people',
  'logs',
  'minute',
  'health',
  'automations',
  'alerts',
] as const
export type LiveTopic = (typeof LIVE_TOPICS)[number]

export interface Change {
  /** Unique and ascending within the process; the event's `id`. */
  id: string
  topics: readonly LiveTopic[]
}

interface Listener {
  changed: (change: Change) => void
  /** Called every eight seconds: shorter than any proxy or the runtime waits for a silent stream. */
  beat: () => void
  /** Permissions or the session may have ended. */
  check: () => void
  /** Another process serves the stream from now on: the client reconnects. */
  end: () => void
}

interface LiveDeps {
  clock: Clock
  /** This process's number, because two may start in the same millisecond. */
  process?: number | null
  /** A value that changes whenever health does. */
  health: () => string
}

const TICK_MS = 1000
const TICKS_A_BEAT = 8
/** Minimum seconds between messages of a topic, for frequently changing numbers. */
const EVERY_SECONDS: Partial<Record<LiveTopic, number>> = { usage: 5 }
/** With more requests than this, rows are unreadable and fetching them would slow down requests. */
const MAX_READ = 100
const CROWDED_SECONDS = 5

const OF_COMMIT: Partial<Record<Topic, LiveTopic>> = {
  accounts: 'accounts',
  keys: 'keys',
  settings: 'settings',
  firewall: 'settings',
  sources: 'settings',
  people: 'people',
  automations: 'automations',
  alerts: 'alerts',
}
/** After these, a session may have ended or lost permissions. */
const CHECKED: readonly Topic[] = ['sessions', 'people', 'settings']

/** One timer for all listeners, none while there are none. */
export class LiveHub {
  readonly #deps: LiveDeps
  /** Each with the tick of its heartbeat, so that checks are spread over time. */
  readonly #listeners = new Map<Listener, number>()
  readonly #pending = new Set<LiveTopic>()
  /** The number of each topic's last message. */
  readonly #toldIn = new Map<LiveTopic, number>()
  readonly #epoch: string
  #number = 0
  #ticks = 0
  /** Requests not yet announced as `logs`. */
  #untold = 0
  /** The last seen values that nothing announces; null: not compared yet. */
  #seen: { minute: number; health: string } | null = null
  #cancelTick: (() => void) | null = null

  constructor(deps: LiveDeps) {
    this.#deps = deps
    this.#epoch = `${deps.clock.now().toString(36)}${deps.process ? `-${deps.process}` : ''}`
  }

  /** Call before a page reads its data: its stream then starts with changes `since` this id. */
  mark(): string {
    this.#look()
    return this.lastId
  }

  /** Id of the last message, for new listeners. */
  get lastId(): string {
    return `${this.#epoch}.${this.#number}`
  }

  /** Topics changed after message `id`; all topics when it is unknown. */
  since(id: string): readonly LiveTopic[] {
    const [epoch, number] = id.split('.')
    if (epoch !== this.#epoch) return LIVE_TOPICS
    return LIVE_TOPICS.filter((topic) => (this.#toldIn.get(topic) ?? 0) > Number(number))
  }

  /** Only touches memory. Sent within a second, or kept for returning listeners. */
  note(topic: LiveTopic): void {
    if (this.#listeners.size > 0) this.#pending.add(topic)
    else this.#toldIn.set(topic, ++this.#number)
  }

  /** Requests have ended: announced within a second, or every five seconds when there are many. */
  ended(turns: number): void {
    if (this.#listeners.size > 0) this.#untold += turns
    this.note('logs')
  }

  /** For `onChange`: maps a commit's topics. */
  committed(topics: ReadonlySet<Topic>): void {
    for (const topic of topics) {
      const told = OF_COMMIT[topic]
      if (told) this.note(told)
    }
    if (!CHECKED.some((topic) => topics.has(topic))) return
    // Separately, because each check reads the database while streams wait.
    for (const listener of this.#listeners.keys()) this.#deps.clock.after(0, () => this.#check(listener))
  }

  /** Returns the function that removes the listener, safe to call repeatedly. */
  join(listener: Listener): () => void {
    if (this.#cancelTick === null) this.#start()
    this.#listeners.set(listener, this.#ticks % TICKS_A_BEAT)
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.stop()
    }
  }

  /** Ends every stream. */
  endAll(): void {
    for (const listener of [...this.#listeners.keys()]) listener.end()
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
    const topics = [...this.#pending].filter((topic) => this.#ticks % this.#toSeconds(topic) === 0)
    if (topics.length === 0) return
    if (topics.includes('logs')) this.#untold = 0
    this.#number++
    for (const topic of topics) {
      this.#pending.delete(topic)
      this.#toldIn.set(topic, this.#number)
    }
    for (const listener of [...this.#listeners.keys()]) listener.changed({ id: this.lastId, topics })
  }

  #toSeconds(topic: LiveTopic): number {
    if (topic === 'logs' && this.#untold > MAX_READ) return CROWDED_SECONDS
    return EVERY_SECONDS[topic] ?? 1
  }

  #check(listener: Listener): void {
    if (this.#listeners.has(listener)) listener.check()
  }

  #minuteNow(): number {
    return Math.floor(this.#deps.clock.now() / MINUTE_MS)
  }
}
