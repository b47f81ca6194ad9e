/** The windows of shares, and how much users may borrow, calculated in capacity credits. */
import { HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import type { PoolWindow } from '../overview/pool-usage.ts'
import type { Share } from './share-rows.ts'

export type ShareWindow = 'five_hour' | 'weekly'

interface WindowFacts {
  windowMs: number
  stepMs: number
  /** The pool's window of the same length. */
  pool: PoolWindow['window']
  /** Which of the rates converts units of use to credits. */
  rate: 'short' | 'long'
  percent: keyof Share
  text: string
}

/** Steps of the longer window are multiples of those of the shorter one. */
export const SHARE_WINDOWS: Readonly<Record<ShareWindow, WindowFacts>> = {
  five_hour: {
    windowMs: 5 * HOUR_MS,
    stepMs: 5 * MINUTE_MS,
    pool: '5h',
    rate: 'short',
    percent: 'fiveHourPercent',
    text: 'five-hour',
  },
  weekly: {
    windowMs: 7 * 24 * HOUR_MS,
    stepMs: 3 * HOUR_MS,
    pool: '7d',
    rate: 'long',
    percent: 'weeklyPercent',
    text: 'weekly',
  },
}

export const WINDOW_NAMES: readonly ShareWindow[] = ['five_hour', 'weekly']

/** One user's share and its use, in credits. */
export interface Position {
  userId: string
  share: number
  /** Used by requests that ended in the window. */
  used: number
  /** The expected use of running requests. */
  reserved: number
  /** Whether the user sent a request recently or has one running. */
  isActive: boolean
}

/** The credits that can be borrowed: those that active users do not need for the rest of their shares. */
export const spareCredits = (positions: readonly Position[], borrowerId: string, remaining: number): number => {
  let spare = remaining
  for (const { userId, share, used, reserved, isActive } of positions) {
    if (used >= share) spare -= reserved
    else if (isActive && userId !== borrowerId) spare -= share - used
  }
  return spare
}

/** Whether another active user has not used up their share and may need it. */
export const hasLender = (positions: readonly Position[], borrowerId: string): boolean =>
  positions.some(({ userId, share, used, isActive }) => userId !== borrowerId && isActive && used < share)

/** How many credits of each user's share are used by others. Capacity that is in no share is borrowed first. */
export const lentCredits = (positions: readonly Position[], capacity: number): ReadonlyMap<string, number> => {
  const sum = (of: (position: Position) => number) => positions.reduce((total, position) => total + of(position), 0)
  const unused = (position: Position) => Math.max(0, position.share - position.used)
  const borrowed = sum(({ used, share }) => Math.max(0, used - share))
  const unassigned = Math.max(0, capacity - sum(({ share }) => share))
  const available = sum(unused)
  const lent = Math.min(available, Math.max(0, borrowed - unassigned))
  return new Map(
    positions.map((position) => [position.userId, available === 0 ? 0 : (lent * unused(position)) / available]),
  )
}
