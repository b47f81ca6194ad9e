/** The small drawings of the overview, made on the server: geometry in attributes, colour in classes, words in titles. */
import type { FC } from 'hono/jsx'
import type { Outcome } from '../../src/model/outcome-strip.ts'
import { units } from '../ui/svg.ts'

/** A cell is 6 wide and has a gap of 2: the dashes of a thick line, which begin anew with each stretch of one kind. */
const CELL = 8
const GAP = 2
const HEIGHT = 18

/** Told apart by height and notch as well as by colour: full, full with a notch, half, a line. Middles of the lines. */
const LINES: Record<Outcome, readonly number[]> = { ok: [9], some_errors: [4, 14], blocked: [13.5], idle: [17] }
const KINDS = Object.keys(LINES) as Outcome[] // as: a record of all outcomes

export const OutcomeStrip: FC<{ strip: readonly Outcome[]; label: string }> = ({ strip, label }) => (
  <svg class="outcomes" viewBox={`0 0 ${strip.length * CELL - GAP} ${HEIGHT}`} preserveAspectRatio="none" role="img">
    <title>{label}</title>
    {KINDS.map((kind) => strip.includes(kind) && <path class={`outcome-${kind}`} d={pathOf(strip, kind)} />)}
  </svg>
)

const pathOf = (strip: readonly Outcome[], kind: Outcome): string => {
  const starts = strip.flatMap((outcome, index) => (outcome === kind && strip[index - 1] !== kind ? [index] : []))
  return starts
    .map((start) => {
      const end = strip.findIndex((outcome, index) => index > start && outcome !== kind)
      const length = ((end < 0 ? strip.length : end) - start) * CELL - GAP
      return LINES[kind].map((y) => `M${start * CELL} ${y}h${length}`).join('')
    })
    .join('')
}

/** What a cell of this kind looks like, for the legend. */
export const OutcomeCell: FC<{ outcome: Outcome }> = ({ outcome }) => (
  <svg class="outcomes" viewBox={`0 0 6 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
    <path class={`outcome-${outcome}`} d={pathOf([outcome], outcome)} />
  </svg>
)

/** A line over 24 points that breaks where nothing is known; alone it is a dash. */
export const Sparkline: FC<{ series: readonly (number | null)[]; label: string }> = ({ series, label }) => {
  const top = Math.max(...series.map((value) => value ?? 0))
  const step = 98 / Math.max(1, series.length - 1)
  const y = (value: number) => units(top === 0 ? 23 : 23 - (value / top) * 21)
  const path = series
    .map((value, index) => {
      if (value === null) return ''
      const isFirst = index === 0 || series[index - 1] === null
      const isAlone = isFirst && (series[index + 1] ?? null) === null
      return `${isFirst ? 'M' : 'L'}${units(index * step + (isAlone ? 0 : 1))} ${y(value)}${isAlone ? 'h2' : ''}`
    })
    .join('')
  return (
    <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img">
      <title>{label}</title>
      <path class="spark-base" d="M0 23.5h100" />
      <path class="spark-line" d={path} />
    </svg>
  )
}
