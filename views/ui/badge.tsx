/** A state in one word, or an outcome as an icon; the colour repeats what the word says, it never says it alone. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import type { AccountStatus } from '../../src/model/account-state.ts'
import { CheckIcon, ClockIcon, CrossIcon, WarningIcon } from './icons.tsx'

export type Tone = 'good' | 'wait' | 'bad' | 'idle'

export const Badge: FC<PropsWithChildren<{ tone: Tone }>> = ({ tone, children }) => (
  <span class={`badge tone-${tone}`}>
    <span class="dot" aria-hidden="true" />
    {children}
  </span>
)

const ICONS: Record<Tone, FC> = { good: CheckIcon, wait: WarningIcon, bad: CrossIcon, idle: ClockIcon }

export const ToneIcon: FC<{ tone: Tone }> = ({ tone }) => {
  const Icon = ICONS[tone]
  return <Icon />
}

const STATES: Record<AccountStatus, [label: string, tone: Tone]> = {
  active: ['Active', 'good'],
  rate_limited: ['Rate limited', 'wait'],
  quota_exceeded: ['Quota used up', 'wait'],
  paused: ['Paused', 'idle'],
  reauth_required: ['Needs sign-in', 'bad'],
  deactivated: ['Deactivated', 'bad'],
}

/** In the words of the badge, for menus. */
export const stateLabel = (status: AccountStatus): string => STATES[status][0]

export const StateBadge: FC<{ status: AccountStatus }> = ({ status }) => (
  <Badge tone={STATES[status][1]}>{STATES[status][0]}</Badge>
)
