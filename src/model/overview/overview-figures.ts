/** Caches the totals of one period: completed slots are read once, the running one every few seconds. */
import type { Clock } from '../../lib/clock.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import type { Present, Slot } from './overview.ts'
import { SLICINGS, type Slicing } from './overview-slots.ts'
import { getTiles, type Tiles } from './overview-tiles.ts'

export interface Figures {
  slotMs: number
  /** Slots before the period, then those of the period, oldest first; the last one is still running. */
  slots: readonly Slot[]
  present: Present
  tiles: Tiles
}

export interface FiguresDeps {
  reader: {
    overviewSlots(from: number, to: number, slotMs: number): Promise<Slot[]>
    overviewPresent(now: number, spanMs: number): Promise<Present>
  }
  clock: Pick<Clock, 'now'>
  /** Default: 24 hours. */
  slicing?: Slicing
}

/** The most to read in one query, in slots or ms, whichever is more. Other reads wait for it in the worker. */
const CHUNK = 8
const CHUNK_MS = 4 * HOUR_MS
/** Older totals are reloaded in the background. */
const MAX_AGE_MS = 5000
/** Totals this old are never shown. */
const TOO_OLD_MS = 60_000
/** A request is logged when it ends, in the half hour in which it began; few take longer than this. */
const LATE_MS = HOUR_MS
const LATE_MAX_AGE_MS = 60_000

interface Read {
  slot: Slot
  /** ms since epoch */
  readAt: number
}

export class OverviewFigures {
  readonly #deps: FiguresDeps
  readonly #slicing: Slicing
  #reads = new Map<number, Read>()
  #figures: { value: Figures; readAt: number } | null = null
  #reading: Promise<Figures> | null = null

  constructor(deps: FiguresDeps) {
    this.#deps = deps
    this.#slicing = deps.slicing ?? SLICINGS['24h']
  }

  /** At most a minute old; concurrent calls share one read. Throws what the reader throws. */
  async now(): Promise<Figures> {
    const known = this.#figures
    const ageMs = getAge(known, this.#deps.clock.now())
    if (known && ageMs < MAX_AGE_MS) return known.value
    const reading = this.#refresh()
    return known && ageMs < TOO_OLD_MS ? known.value : reading
  }

  /** Someone changed a key and expects to see it. */
  forgetKeys(): void {
    this.#figures = null
    this.#reading = null
  }

  /** Rows of the log were deleted, also in slots that are over. */
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
      if (this.#reading !== reading) return // something may have changed during the read
      this.#reading = null
      if (value) this.#figures = { value, readAt: now }
    }
    reading.then(end, () => end(null)) // the next call throws once the known totals are too old
    return reading
  }

  async #read(now: number): Promise<Figures> {
    const reads = this.#reads
    const { slotMs, slots: length, hasBefore } = this.#slicing
    const kept = hasBefore ? 2 * length : length
    const last = now - (now % slotMs)
    const starts = Array.from({ length: kept }, (_, index) => last - (kept - 1 - index) * slotMs)
    const [present] = await Promise.all([
      this.#deps.reader.overviewPresent(now, length * slotMs),
      this.#readSlots(reads, starts, now),
    ])
    for (const at of reads.keys()) if (at < (starts[0] ?? 0) || at > last) reads.delete(at)
    const slots = starts.flatMap((at) => reads.get(at)?.slot ?? [])
    return { slotMs, slots, present, tiles: getTiles({ slots, present }, length) }
  }

  async #readSlots(reads: Map<number, Read>, starts: readonly number[], now: number): Promise<void> {
    const { slotMs } = this.#slicing
    const stale = starts.filter((at) => isStale(reads.get(at), at + slotMs, now))
    for (const [from, to] of getRanges(stale, slotMs))
      for (const slot of await this.#deps.reader.overviewSlots(from, to, slotMs))
        reads.set(slot.at, { slot, readAt: now })
  }
}

const isStale = (read: Read | undefined, end: number, now: number): boolean => {
  if (!read || read.readAt > now) return true
  if (read.readAt >= end + LATE_MS) return false
  return now - read.readAt >= (now < end ? MAX_AGE_MS : LATE_MAX_AGE_MS)
}

/** A read after `now` means the clock was set back, so its age is unknown. */
const getAge = (read: { readAt: number } | null, now: number): number =>
  read && read.readAt <= now ? now - read.readAt : Number.POSITIVE_INFINITY

type Range = [from: number, to: number]

/** Groups adjacent slots, up to one read each. */
const getRanges = (starts: readonly number[], slotMs: number): Range[] => {
  const most = Math.max(CHUNK * slotMs, CHUNK_MS)
  const ranges: Range[] = []
  for (const at of starts) {
    const range = ranges.at(-1)
    if (range && range[1] === at && at - range[0] < most) range[1] = at + slotMs
    else ranges.push([at, at + slotMs])
  }
  return ranges
}
