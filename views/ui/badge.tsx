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

/** The same words for menus. */
export const STATE_LABELS: Readonly<Record<AccountStatus, string>> = {
  active: STATES.active[0],
  rate_limited: STATES.rate_limited[0],
  quota_exceeded: STATES.quota_exceeded[0],
  paused: STATES.paused[0],
  reauth_required: STATES.reauth_required[0],
  deactivated: STATES.deactivated[0],
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
