/** The totals of each period of the overview, from the first request on. */
import type { Slot } from './overview.ts'
import { type Figures, type FiguresDeps, OverviewFigures } from './overview-figures.ts'
import { getSlicing, type Period, type Slicing } from './overview-slots.ts'
import type { Tile, Tiles } from './overview-tiles.ts'

export interface PeriodFigures extends Figures {
  period: Period
  /** Slots of the period from the first request on; the last one is still running. */
  slots: readonly Slot[]
  /** Slots on the time axis: more than there are while it fills up. */
  cells: number
}

interface PeriodsDeps extends Omit<FiguresDeps, 'slicing'> {
  reader: FiguresDeps['reader'] & { overviewBegin(): Promise<number | null> }
}

/** A shorter axis would show very wide bars. */
const FEWEST_CELLS = 12

export class OverviewPeriods {
  readonly #deps: PeriodsDeps
  readonly #figures = new Map<Slicing, OverviewFigures>()
  /** ms since epoch; null: no request is known yet. */
  #firstAt: number | null = null

  constructor(deps: PeriodsDeps) {
    this.#deps = deps
  }

  /** At most a minute old. Throws what the reader throws. */
  async now(period: Period = '24h'): Promise<PeriodFigures> {
    this.#firstAt ??= await this.#deps.reader.overviewBegin()
    const now = this.#deps.clock.now()
    const slicing = getSlicing(period, this.#firstAt, now)
    const figures = this.#figures.getOrInsertComputed(slicing, () => new OverviewFigures({ ...this.#deps, slicing }))
    const value = await figures.now()
    const slots = sinceFirst(value.slots.slice(-slicing.slots), this.#firstAt ?? now, slicing.slotMs)
    const isComparable = this.#firstAt !== null && this.#firstAt < (value.slots[0]?.at ?? 0) + slicing.slotMs
    const tiles = isComparable ? value.tiles : withoutBefore(value.tiles)
    return { ...value, tiles, period, slots, cells: Math.max(slots.length, FEWEST_CELLS) }
  }

  /** Someone changed a key and expects to see it. */
  forgetKeys(): void {
    for (const figures of this.#figures.values()) figures.forgetKeys()
  }

  /** Rows of the log were deleted, also in slots that are over. */
  forgetLog(): void {
    this.#firstAt = null
    for (const figures of this.#figures.values()) figures.forgetLog()
  }
}

/** When the previous period began before the first request, a comparison would show growth where there is none. */
const withoutBefore = (tiles: Tiles): Tiles => {
  const { requests, tokens, cost, errorRate, firstToken } = tiles
  const alone = (tile: Tile): Tile => ({ ...tile, before: null })
  return {
    ...tiles,
    requests: alone(requests),
    tokens: alone(tokens),
    cost: alone(cost),
    errorRate: alone(errorRate),
    firstToken: alone(firstToken),
  }
}

const sinceFirst = (slots: readonly Slot[], firstAt: number, slotMs: number): readonly Slot[] => {
  const shown = slots.filter(({ at }) => at + slotMs > firstAt)
  return shown.length > 0 ? shown : slots.slice(-1)
}
