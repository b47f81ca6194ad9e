/** Where the time of a request went, as a bar in parts: queue, select, connect, first token, stream. */
import type { FC } from 'hono/jsx'
import type { LogEntry } from '../../src/model/log/request-log-entry.ts'
import { units } from '../ui/svg.ts'
import { durationText } from '../ui/time.tsx'

type Phases = LogEntry['phases']

interface Segment {
  name: string
  className: string
  fromMs: number
  ms: number
}

/** Each part ends where the next begins. Phases not reached are missing; the remaining time belongs to the last one. */
const getSegments = ({ admitMs, selectMs, connectMs, firstEventMs, totalMs }: Phases): Segment[] => {
  const ends = [
    ['Queue', 'queue', admitMs],
    ['Select', 'select', selectMs],
    ['Connect', 'connect', connectMs],
    ['First token', 'first', firstEventMs],
  ] as const
  const segments: Segment[] = []
  let from = 0
  for (const [name, className, end] of ends) {
    if (end === null) break
    const to = Math.min(Math.max(end, from), totalMs)
    segments.push({ name, className, fromMs: from, ms: to - from })
    from = to
  }
  const last = segments.length === ends.length ? 'Stream' : 'Until the end'
  return [...segments, { name: last, className: 'stream', fromMs: from, ms: totalMs - from }]
}

/** Narrower parts would be invisible (of 1000). */
const MIN_WIDTH = 4

export const TimingBar: FC<{ phases: Phases; isOk: boolean }> = ({ phases, isOk }) => {
  const segments = getSegments(phases)
  const scale = 1000 / Math.max(phases.totalMs, 0.001)
  return (
    <>
      <svg class="timing-bar" viewBox="0 0 1000 14" preserveAspectRatio="none" role="img">
        <title>{segments.map(({ name, ms }) => `${name} ${durationText(ms)}`).join(', ')}</title>
        <rect class="bar-track" width="1000" height="14" />
        {segments.map(({ className, fromMs, ms }) => (
          <rect
            class={getClass(className, isOk)}
            x={units(Math.min(fromMs * scale, 1000 - MIN_WIDTH))}
            width={units(ms > 0 ? Math.max(ms * scale, MIN_WIDTH) : 0)}
            height="14"
          />
        ))}
      </svg>
      <ul class="timing-parts muted">
        {segments.map(({ name, className, ms }) => (
          <li>
            <svg class="swatch" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
              <rect class={getClass(className, isOk)} width="10" height="10" rx="2" />
            </svg>
            {name} <b>{preciseText(ms)}</b>
          </li>
        ))}
        <li>
          Total <b>{durationText(phases.totalMs)}</b>
        </li>
      </ul>
    </>
  )
}

const getClass = (className: string, isOk: boolean): string =>
  className === 'stream' && !isOk ? 'part-failed' : `part-${className}`

interface AttemptBarProps {
  startMs: number
  durationMs: number
  totalMs: number
  outcome: 'ok' | 'failed' | 'cancelled'
}

/** When this attempt ran within the request. */
export const AttemptBar: FC<AttemptBarProps> = ({ startMs, durationMs, totalMs, outcome }) => {
  const scale = 1000 / Math.max(totalMs, 0.001)
  const x = Math.min(Math.max(0, startMs * scale), 1000 - MIN_WIDTH)
  return (
    <svg class="timing-bar attempt-bar" viewBox="0 0 1000 6" preserveAspectRatio="none" aria-hidden="true">
      <rect class="bar-track" width="1000" height="6" />
      <rect
        class={outcome === 'ok' ? 'part-first' : 'part-failed'}
        x={units(x)}
        width={units(Math.min(Math.max(durationMs * scale, MIN_WIDTH), 1000 - x))}
        height="6"
      />
    </svg>
  )
}

const preciseText = (ms: number): string => (ms < 10 ? `${Math.round(ms * 10) / 10} ms` : durationText(ms))
