/** The rule by which Sluice uses the reset credits of an account, and what it would do now. */
import type { FC } from 'hono/jsx'
import type { WireAccount } from '../../src/model/accounts/account-view.ts'
import type { ResetPlan, ResetRule } from '../../src/model/accounts/reset-rule.ts'
import { RESET_RULES } from '../settings/words.ts'
import { Submit } from '../ui/button.tsx'
import { Field, Form } from '../ui/form.tsx'
import { type Option, Select } from '../ui/select.tsx'
import { Moment } from '../ui/time.tsx'

export interface ResetRuleProps {
  /** In force. */
  rule: ResetRule
  /** The settings for all accounts. */
  defaults: ResetRule
  /** `at`: ISO 8601; null: nothing is planned. */
  plan: { at: string; left: number; isDue: boolean } | null
  /** Why nothing is planned; null: something is, or the credits have not been fetched. */
  waitingFor: Extract<ResetPlan, { kind: 'waiting' }>['for'] | null
  /** Why it cannot be changed; null: it can. */
  refusal: string | null
}

type Props = ResetRuleProps & { account: WireAccount }

export const ResetRulePart: FC<Props> = (props) => (
  <div class="stack">
    <p id="reset-plan" class="small">
      <Plan {...props} />
    </p>
    {props.refusal === null && <RuleForm {...props} />}
  </div>
)

const Plan: FC<Props> = ({ plan, waitingFor, rule }) => {
  if (waitingFor !== null) return <>{waitingText(waitingFor, rule)}</>
  if (!plan) return <>The reset credits have not been fetched yet.</>
  if (plan.isDue) return <>Sluice will use a reset credit within a minute, with {plan.left} left after that.</>
  return (
    <>
      Sluice will use a reset credit on <Moment at={plan.at} />, with {plan.left} left after that.
    </>
  )
}

const waitingText = (
  reason: NonNullable<ResetRuleProps['waitingFor']>,
  { percent, keepCredits }: ResetRule,
): string => {
  switch (reason) {
    case 'never':
      return 'Sluice uses no reset credits automatically.'
    case 'no_credit':
      return 'This account has no reset credits.'
    case 'kept':
      return `Sluice won’t use the remaining credits, because it keeps ${keepCredits} for you.`
    case 'exhausted':
      return 'Sluice will use a reset credit when a window is used up.'
    case 'percent':
      return `Sluice will use a reset credit when ${percent} % of a window is used.`
    case 'expiry':
      return 'Sluice will use a reset credit in the last 24 hours before it expires.'
    case 'reset_soon':
      return 'Sluice isn’t using a reset credit now, because the limits reset soon on their own.'
    case 'attempted':
      return 'Sluice tried each of these credits once, without success. You can still use them yourself.'
    case 'nothing_to_reset':
      return 'ChatGPT had nothing to reset. Sluice will try again when the usage changes.'
  }
}

const RuleForm: FC<Props> = ({ account, defaults }) => {
  const policies: Option[] = Object.entries(RESET_RULES).map(([name, { label }]) => [name, label])
  return (
    <Form
      name="reset-rule"
      class="stack"
      method="patch"
      action={`/api/accounts/${encodeURIComponent(account.accountId)}`}
    >
      <input type="hidden" name="expectedVersion" value={account.version} />
      <Select
        label="Use reset credits"
        name="resetPolicy"
        options={[['', `Default (${RESET_RULES[defaults.policy].label})`], ...policies]}
        value={account.resetPolicy ?? ''}
      />
      <RuleNumber label="Credits to keep" name="keepCredits" {...numbers(account.keepCredits, defaults.keepCredits)} />
      <RuleNumber
        label="Wait if the limits reset within (minutes)"
        name="minBlockedMinutes"
        {...numbers(account.minBlockedMinutes, defaults.minBlockedMinutes)}
      />
      <RuleNumber label="Percent used" name="percent" {...numbers(account.percent, defaults.percent)} />
      <div class="actions">
        <Submit>Save</Submit>
      </div>
    </Form>
  )
}

const numbers = (value: number | null, fallback: number) => ({ value, fallback })

const RuleNumber: FC<{ label: string; name: string; value: number | null; fallback: number }> = (props) => (
  <Field
    label={props.label}
    name={props.name}
    value={props.value === null ? null : String(props.value)}
    placeholder={`Default: ${props.fallback}`}
    maxlength={5}
    class="field-short"
  />
)
