/** The state of an account in one word; the colour repeats what the word says, it never says it alone. */
import type { FC } from 'hono/jsx'
import type { AccountStatus } from '../../src/model/account-state.ts'

export type Tone = 'good' | 'wait' | 'bad' | 'idle'

const STATES: Record<AccountStatus, [label: string, tone: Tone]> = {
  active: ['Active', 'good'],
  rate_limited: ['Rate limited', 'wait'],
  quota_exceeded: ['Quota used up', 'wait'],
  paused: ['Paused', 'idle'],
  reauth_required: ['Needs sign-in', 'bad'],
  deactivated: ['Deactivated', 'bad'],
}

export const StateBadge: FC<{ status: AccountStatus }> = ({ status }) => {
  const [label, tone] = STATES[status]
  return (
    <span class={`badge tone-${tone}`}>
      <span class="dot" aria-hidden="true" />
      {label}
    </span>
  )
}
