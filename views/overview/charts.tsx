/** Small charts of the overview, drawn on the server: geometry in attributes, colours in classes, text in titles. */
import type { FC } from 'hono/jsx'
import type { Outcome } from '../../src/model/overview/outcome-strip.ts'
import { units } from '../ui/svg.ts'

/** A cell is 6 wide with a gap of 2: dashes of a thick line that restarts with each run of one kind. */
const CELL = 8
const GAP = 2
const HEIGHT = 18

/** Kinds differ in height and shape as well as colour: full, full with a notch, half, a line. Values are line centres. */
const LINES: Record<Outcome, readonly number[]> = { ok: [9], some_errors: [4, 14], blocked: [13.5], idle: [17] }
const KINDS = Object.keys(LINES) as Outcome[] // as: a record of all outcomes

/** `cells`: how many the axis shows; a short strip fills it from the left. */
export const OutcomeStrip: FC<{ strip: readonly Outcome[]; cells: number; label: string }> = ({
  strip,
  cells,
  label,
}) => (
  <svg class="outcomes" viewBox={`0 0 ${cells * CELL - GAP} ${HEIGHT}`} preserveAspectRatio="none" role="img">
    <title>{label}</title>
    {KINDS.map((kind) => strip.includes(kind) && <path class={`outcome-${kind}`} d={toPath(strip, kind)} />)}
  </svg>
)

/** Each run of one kind is one dashed line. Moves are relative to keep the markup small. */
const toPath = (strip: readonly Outcome[], kind: Outcome): string => {
  const starts = strip.flatMap((outcome, index) => (outcome === kind && strip[index - 1] !== kind ? [index] : []))
  const lines = starts.map((start) => {
    const end = strip.findIndex((outcome, index) => index > start && outcome !== kind)
    return { x: start * CELL, length: ((end < 0 ? strip.length : end) - start) * CELL - GAP }
  })
  return LINES[kind]
    .map((y) => lines.map(({ x, length }, n) => `${moveTo(lines[n - 1], x, y)}h${length}`).join(''))
    .join('')
}

const moveTo = (before: { x: number; length: number } | undefined, x: number, y: number): string =>
  before ? `m${x - before.x - before.length} 0` : `M${x} ${y}`

/** A cell of this kind, for the legend. */
export const OutcomeCell: FC<{ outcome: Outcome }> = ({ outcome }) => (
  <svg class="outcomes" viewBox={`0 0 6 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
    <path class={`outcome-${outcome}`} d={toPath([outcome], outcome)} />
  </svg>
)

/** A line with gaps where values are unknown; a single point is a dash. */
export const Sparkline: FC<{ series: readonly (number | null)[]; label: string }> = ({ series, label }) => {
  const top = Math.max(...series.map((value) => value ?? 0))
  const y = (value: number) => units(top === 0 ? 23 : 23 - (value / top) * 21)
  const path = series
    .map((value, index) => {
      if (value === null) return ''
      const isFirst = index === 0 || series[index - 1] === null
      const isAlone = isFirst && (series[index + 1] ?? null) === null
      return `${isFirst ? 'M' : 'L'}${index} ${y(value)}${isAlone ? 'h.5' : ''}`
    })
    .join('')
  return (
    <svg class="spark" viewBox={`-.5 0 ${series.length} 24`} preserveAspectRatio="none" role="img">
      <title>{label}</title>
      <path class="spark-base" d={`M-.5 23.5h${series.length}`} />
      <path class="spark-line" d={path} />
    </svg>
  )
}
