/** A state in one word, or an outcome as an icon; the colour repeats what the word says, it never says it alone. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import type { AccountStatus } from '../../src/model/account-state.ts'
import { STATE_NAMES } from '../../src/model/account-words.ts'
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

const STATE_TONES: Record<AccountStatus, Tone> = {
  active: 'good',
  rate_limited: 'wait',
  quota_exceeded: 'wait',
  paused: 'idle',
  reauth_required: 'bad',
  deactivated: 'bad',
}

export const StateBadge: FC<{ status: AccountStatus }> = ({ status }) => (
  <Badge tone={STATE_TONES[status]}>{STATE_NAMES[status]}</Badge>
)
