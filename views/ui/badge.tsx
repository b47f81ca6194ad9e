/** A state as one word, or an outcome as an icon; colour only repeats the meaning. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import type { AccountStatus } from '../../src/model/accounts/account-state.ts'
import { STATE_NAMES } from '../../src/model/accounts/account-words.ts'
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

/** The badge that a button will most likely lead to. */
export interface Expected {
  /** Selects the badges that will change. */
  at: string
  text: string
  tone: Tone
}

export const expectedState = (at: string, status: AccountStatus): Expected => ({
  at,
  text: STATE_NAMES[status],
  tone: STATE_TONES[status],
})

/** Attributes of the form or button that is sent: the script shows this badge until the answer is here. */
export const expectedBadge = ({ at, text, tone }: Expected) => ({
  'data-expects': text,
  'data-expects-tone': tone,
  'data-expects-at': at,
})
