/** What an account came to in each half hour of the last day: what it answered, and when it could not be asked. */
import type { AccountView } from './account-view.ts'
import type { StateChange } from './overview.ts'
import type { Figures } from './overview-figures.ts'
import { SLOT_MS, SLOTS_A_DAY } from './overview-slots.ts'

const OUTCOMES = ['ok', 'some_errors', 'blocked', 'idle'] as const
export type Outcome = (typeof OUTCOMES)[number]

/** 48 half hours, oldest first. What was answered counts for more than a block that began or ended in the same one. */
export const stripOf = (
  account: Pick<AccountView, 'accountId' | 'status' | 'since'>,
  figures: Pick<Figures, 'slots' | 'present'>,
): Outcome[] => {
  const wasBlocked = blockedIn(account, figures.present.stateChanges.get(account.accountId) ?? [])
  return figures.slots.slice(-SLOTS_A_DAY).map(({ at, accounts }) => {
    const turns = accounts.get(account.accountId)
    if (turns && turns.errors > 0) return 'some_errors'
    if (turns) return 'ok'
    return wasBlocked(at, at + SLOT_MS) ? 'blocked' : 'idle'
  })
}

type Standing = Pick<AccountView, 'status' | 'since'>

/** Before the first change that is known stood the opposite of what it changed to; a block that none tells of stands since it does. */
const blockedIn = ({ status, since }: Standing, changes: readonly StateChange[]) => {
  const isActive = status === 'active'
  const started: StateChange = { at: since ?? Number.NEGATIVE_INFINITY, isActive }
  const known = !isActive && changes.at(-1)?.isActive !== false ? [...changes, started] : changes
  const first = known[0]
  const history = first ? [{ at: Number.NEGATIVE_INFINITY, isActive: !first.isActive }, ...known] : [started]
  const blocks = history.flatMap((change, index) =>
    change.isActive ? [] : [{ from: change.at, to: history[index + 1]?.at ?? Number.POSITIVE_INFINITY }],
  )
  return (from: number, to: number): boolean => blocks.some((block) => block.from < to && block.to > from)
}
