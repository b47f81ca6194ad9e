/** The numbers of a period next to those of the previous period, each as a series. */
import type { Present, Slot } from './overview.ts'
import { SLOTS_A_DAY } from './overview-slots.ts'

export interface Tile {
  /** null: unknown, which is not zero. */
  value: number | null
  /** The same without the running slot. */
  ended: number | null
  /** The same number of slots before the period; null: nothing to compare with. */
  before: number | null
  /** Up to 30 points, oldest first; null is a gap. */
  series: readonly (number | null)[]
}

export interface Tiles {
  requests: Tile
  tokens: Tile
  /** Percent of the input tokens; null: there were none. */
  cachedPercent: number | null
  /** Millionths of a US dollar. */
  cost: Tile
  /** Percent of the requests. */
  errorRate: Tile
  /** Median time to the first event, ms. */
  firstToken: Tile
  /** 95th percentile of the time to the first event, ms. */
  firstTokenP95Ms: number | null
  /** With a request in the last hour; `before` is the hour before. */
  conversations: Tile
}

/** A tile has room for no more. */
const MAX_POINTS = 30

/** `length`: how many slots at the end belong to the period. */
export const getTiles = (
  { slots, present }: { slots: readonly Slot[]; present: Present },
  length = SLOTS_A_DAY,
): Tiles => {
  const period = slots.slice(-length)
  const ended = period.slice(0, -1)
  const before = slots.slice(0, -length - 1)
  const perPoint = Math.ceil(period.length / MAX_POINTS)
  const points = Array.from({ length: Math.ceil(period.length / perPoint) }, (_, point) =>
    period.slice(point * perPoint, (point + 1) * perPoint),
  )
  const tile = (of: (slots: readonly Slot[]) => number | null): Tile => ({
    value: of(period),
    ended: of(ended),
    before: before.length === 0 ? null : of(before),
    series: points.map(of),
  })
  const input = sum(period, (slot) => slot.inputTokens)
  return {
    requests: tile((some) => sum(some, (slot) => slot.requests)),
    tokens: tile(tokens),
    cachedPercent: input === 0 ? null : (sum(period, (slot) => slot.cachedInputTokens) / input) * 100,
    cost: tile(cost),
    errorRate: tile((some) => percent(some)),
    firstToken: tile((some) => quantile(some, 0.5)),
    firstTokenP95Ms: quantile(period, 0.95),
    conversations: {
      value: present.conversations.now,
      ended: present.conversations.now,
      before: present.conversations.before,
      series: points.map(mostConversations),
    },
  }
}

const mostConversations = (slots: readonly Slot[]): number | null =>
  slots.some(({ conversations }) => conversations === null)
    ? null
    : Math.max(0, ...slots.map(({ conversations }) => conversations ?? 0))

const sum = (slots: readonly Slot[], of: (slot: Slot) => number): number =>
  slots.reduce((total, slot) => total + of(slot), 0)

const tokens = (slots: readonly Slot[]): number => sum(slots, (slot) => slot.inputTokens + slot.outputTokens)

/** Tokens without cost are of models without a known price. */
const cost = (slots: readonly Slot[]): number | null => {
  const micros = sum(slots, (slot) => slot.costMicros)
  return micros === 0 && tokens(slots) > 0 ? null : micros
}

const percent = (slots: readonly Slot[]): number | null => {
  const requests = sum(slots, (slot) => slot.requests)
  return requests === 0 ? null : (sum(slots, (slot) => slot.errors) / requests) * 100
}

/** Each slot's sample is weighted by the number of requests with a first event. */
export const quantile = (slots: readonly Slot[], share: number): number | null => {
  const weighted = slots
    .flatMap(({ firstEventMs, begun }) => firstEventMs.map((ms) => ({ ms, weight: begun / firstEventMs.length })))
    .sort((a, b) => a.ms - b.ms)
  let left = share * weighted.reduce((total, { weight }) => total + weight, 0)
  for (const { ms, weight } of weighted) {
    left -= weight
    if (left <= 0) return ms
  }
  return weighted.at(-1)?.ms ?? null
}
