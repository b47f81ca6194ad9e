/** The result of an account in each slot of a period: whether it answered, and when it was not available. */
import type { AccountView } from '../accounts/account-view.ts'
import type { StateChange } from './overview.ts'
import type { Figures } from './overview-figures.ts'

const OUTCOMES = ['ok', 'some_errors', 'blocked', 'idle'] as const
export type Outcome = (typeof OUTCOMES)[number]

/** One per slot, oldest first. Answers take precedence over a block that began or ended in the same slot. */
export const getStrip = (
  account: Pick<AccountView, 'accountId' | 'status' | 'since'>,
  figures: Pick<Figures, 'slotMs' | 'slots' | 'present'>,
): Outcome[] => {
  const wasBlocked = blockedIn(account, figures.present.stateChanges.get(account.accountId) ?? [])
  return figures.slots.map(({ at, accounts }) => {
    const turns = accounts.get(account.accountId)
    if (turns && turns.errors > 0) return 'some_errors'
    if (turns) return 'ok'
    return wasBlocked(at, at + figures.slotMs) ? 'blocked' : 'idle'
  })
}

type Standing = Pick<AccountView, 'status' | 'since'>

/** Before the first known change the state was the opposite; a block without a known change began at `since`. */
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
