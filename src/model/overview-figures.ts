/** Keeps the sums of the overview: half hours that are over are read once, the running one every few seconds. */
import type { Clock } from '../lib/clock.ts'
import { HOUR_MS } from '../lib/durations.ts'
import type { Present, Slot } from './overview.ts'
import { SLOT_MS, SLOTS_A_DAY } from './overview-slots.ts'
import { type Tiles, tilesOf } from './overview-tiles.ts'

export interface Figures {
  /** The last 48 hours, oldest first; the last one is still running. */
  slots: readonly Slot[]
  present: Present
  tiles: Tiles
}

interface FiguresDeps {
  reader: {
    overviewSlots(from: number, to: number): Promise<Slot[]>
    overviewPresent(now: number): Promise<Present>
  }
  clock: Pick<Clock, 'now'>
}

const KEPT = 2 * SLOTS_A_DAY
/** Read in one go: others wait behind it in the worker. */
const CHUNK = 8
/** Older ones are read anew, behind whoever asks. */
const MAX_AGE_MS = 5000
/** Nobody is shown older ones. */
const TOO_OLD_MS = 60_000
/** A turn is logged when it ends, in the half hour in which it began; few take longer than this. */
const LATE_MS = HOUR_MS
const LATE_MAX_AGE_MS = 60_000

interface Read {
  slot: Slot
  /** ms since epoch */
  readAt: number
}

export class OverviewFigures {
  readonly #deps: FiguresDeps
  #reads = new Map<number, Read>()
  #figures: { value: Figures; readAt: number } | null = null
  #reading: Promise<Figures> | null = null

  constructor(deps: FiguresDeps) {
    this.#deps = deps
  }

  /** At most a minute old; who asks twice within seconds gets what the first time set going. Throws what the reader does. */
  async now(): Promise<Figures> {
    const known = this.#figures
    const ageMs = ageOf(known, this.#deps.clock.now())
    if (known && ageMs < MAX_AGE_MS) return known.value
    const reading = this.#refresh()
    return known && ageMs < TOO_OLD_MS ? known.value : reading
  }

  /** Keys were changed by somebody, who wants to see it. */
  forgetKeys(): void {
    this.#figures = null
    this.#reading = null
  }

  /** Rows of the log were removed, also of half hours that are over. */
  forgetLog(): void {
    this.#reads = new Map()
    this.forgetKeys()
  }

  #refresh(): Promise<Figures> {
    if (this.#reading) return this.#reading
    const now = this.#deps.clock.now()
    const reading = this.#read(now)
    this.#reading = reading
    const end = (value: Figures | null) => {
      if (this.#reading !== reading) return // it may have been under way when something changed
      this.#reading = null
      if (value) this.#figures = { value, readAt: now }
    }
    reading.then(end, () => end(null)) // who asks once the known ones are too old is told
    return reading
  }

  async #read(now: number): Promise<Figures> {
    const reads = this.#reads
    const last = now - (now % SLOT_MS)
    const starts = Array.from({ length: KEPT }, (_, index) => last - (KEPT - 1 - index) * SLOT_MS)
    const [present] = await Promise.all([this.#deps.reader.overviewPresent(now), this.#readSlots(reads, starts, now)])
    for (const at of reads.keys()) if (at < (starts[0] ?? 0) || at > last) reads.delete(at)
    const slots = starts.flatMap((at) => reads.get(at)?.slot ?? [])
    return { slots, present, tiles: tilesOf({ slots, present }) }
  }

  async #readSlots(reads: Map<number, Read>, starts: readonly number[], now: number): Promise<void> {
    const stale = starts.filter((at) => isStale(reads.get(at), at, now))
    for (const [from, to] of rangesOf(stale))
      for (const slot of await this.#deps.reader.overviewSlots(from, to)) reads.set(slot.at, { slot, readAt: now })
  }
}

const isStale = (read: Read | undefined, at: number, now: number): boolean => {
  if (!read || read.readAt > now) return true
  const end = at + SLOT_MS
  if (read.readAt >= end + LATE_MS) return false
  return now - read.readAt >= (now < end ? MAX_AGE_MS : LATE_MAX_AGE_MS)
}

/** What was read ahead of `now` was read by a clock that has been set back: nobody knows how old it is. */
const ageOf = (read: { readAt: number } | null, now: number): number =>
  read && read.readAt <= now ? now - read.readAt : Number.POSITIVE_INFINITY

type Range = [from: number, to: number]

/** Neighbours together, up to `CHUNK` of them. */
const rangesOf = (starts: readonly number[]): Range[] => {
  const ranges: Range[] = []
  for (const at of starts) {
    const range = ranges.at(-1)
    if (range && range[1] === at && at - range[0] < CHUNK * SLOT_MS) range[1] = at + SLOT_MS
    else ranges.push([at, at + SLOT_MS])
  }
  return ranges
}
