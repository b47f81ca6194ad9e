/** The small drawings of the overview, made on the server: geometry in attributes, colour in classes, words in titles. */
import type { FC } from 'hono/jsx'
import type { Outcome } from '../../src/model/outcome-strip.ts'

/** Fills with what is used; the tick is where even use would stand. */
export const PaceBar: FC<{ label: string; used: number; pace: number | null }> = ({ label, used, pace }) => (
  <svg class={`bar ${toneOf(used)}`} viewBox="0 0 100 6" preserveAspectRatio="none" role="img">
    <title>
      {`${label}: ${Math.round(used)} % used`}
      {pace !== null && `, ${Math.round(pace)} % of the time gone`}
    </title>
    <rect class="bar-track" width="100" height="6" />
    <rect class="bar-fill" width={units(Math.min(100, used))} height="6" />
    {pace !== null && <rect class="bar-pace" x={units(Math.min(99.4, pace))} width="0.6" height="6" />}
  </svg>
)

const toneOf = (used: number): string => (used >= 90 ? 'bar-full' : used >= 75 ? 'bar-high' : 'bar-low')

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

const units = (value: number): string => String(Math.round(value * 100) / 100)
