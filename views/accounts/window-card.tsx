/** Whether Sluice starts the five-hour windows of an account, and what the last start did. */
import type { FC } from 'hono/jsx'
import type { WireAccount } from '../../src/model/accounts/account-view.ts'
import type { Settings } from '../../src/settings/schema.ts'
import { DisabledButton } from '../ui/button.tsx'
import { TextCard } from '../ui/card.tsx'
import { Action } from '../ui/form.tsx'
import { Since } from '../ui/time.tsx'

export interface WindowProps {
  isEnabled: boolean
  /** The setting for all accounts. */
  schedule: Settings['windowStart']
  /** The set hours and their time zone. */
  hours: string
  /** `result`: null if Sluice stopped before the answer. */
  last: { at: string; result: 'started' | 'failed' | null; error: string | null } | null
  /** Why it cannot be changed; null: it can. */
  refusal: string | null
  now: string
}

export const WindowCard: FC<WindowProps & { account: WireAccount }> = (props) => (
  <TextCard id="window" title="Window" count={props.isEnabled ? 'on' : 'off'}>
    <p>Sluice can send a tiny request, so that the five-hour window begins before your first request.</p>
    <p class="muted small">
      {scheduleText(props)} <a href="/settings/routing#windows">Change when</a>
    </p>
    {props.last && (
      <p class="small" id="window-last">
        Last start <Since at={props.last.at} now={props.now} />: {RESULTS[props.last.result ?? 'unknown']}
        {props.last.error && <span class="muted"> {props.last.error}</span>}
      </p>
    )}
    <Toggle {...props} />
  </TextCard>
)

const RESULTS = {
  started: 'the window began.',
  failed: 'the request failed.',
  unknown: 'Sluice stopped before ChatGPT answered. The window may have begun.',
}

const scheduleText = ({ schedule, hours }: WindowProps): string => {
  switch (schedule) {
    case 'off':
      return 'Window starts are turned off for all accounts.'
    case 'at_reset':
      return 'When turned on: after each reset.'
    case 'at_hours':
      return `When turned on: at ${hours}.`
  }
}

const Toggle: FC<WindowProps & { account: WireAccount }> = ({ account, isEnabled, refusal }) => {
  const label = isEnabled ? 'Stop starting windows' : 'Start windows'
  if (refusal !== null)
    return (
      <div class="actions">
        <DisabledButton label={label} why={refusal} />
        <span class="muted small">{refusal}</span>
      </div>
    )
  return (
    <Action
      name="window-start"
      method="put"
      action={`/api/accounts/${encodeURIComponent(account.accountId)}/limit-warmup`}
      values={{ enabled: String(!isEnabled) }}
      label={label}
    />
  )
}
