/** Creating and editing an automation, and its runs. */
import type { FC } from 'hono/jsx'
import type { AutomationView, RunView } from '../../src/model/automations/view.ts'
import { type Frame, SettingsFrame } from '../settings/frame.tsx'
import type { Titled } from '../titles.ts'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { TextCard } from '../ui/card.tsx'
import { Action, Check, Field, Form, Outcome } from '../ui/form.tsx'
import { type Choice, getOptions, plainOptions, Select, withChosenOption } from '../ui/select.tsx'
import { RunList } from './list.tsx'
import { AUTOMATIONS_PATH, automationPath, DAY_NAMES, KIND_NAMES, scheduleText } from './words.ts'

export interface Page {
  frame: Frame
  /** ISO 8601: when the page was made. */
  now: string
  done: string | null
  problem: string | null
  canWrite: boolean
}

export interface Runs {
  items: RunView[]
  total: number
  offset: number
  /** The offsets of the neighbouring pages; null: there is none. */
  newer: number | null
  older: number | null
}

/** The options of the form. */
export interface AutomationChoices {
  accounts: Choice[]
  models: Choice[]
  efforts: readonly string[]
  /** What `server_default` is now. */
}

/** What the form starts with. */
export type AutomationDraft = Pick<
  AutomationView,
  | 'name'
  | 'kind'
  | 'enabled'
  | 'includePausedAccounts'
  | 'schedule'
  | 'model'
  | 'reasoningEffort'
  | 'prompt'
  | 'accountIds'
>

export interface NewAutomationForm extends Page {
  draft: AutomationDraft
  choices: AutomationChoices
}

export interface OneAutomation extends Page {
  automation: AutomationView
  /** Null: the user may not change it. */
  choices: AutomationChoices | null
  accounts: Choice[]
  runs: Runs
}

export const NewAutomationPage: FC<NewAutomationForm> = ({ frame, now, problem, draft, choices }) => (
  <SettingsFrame frame={frame} now={now} title="Create automation">
    <TextCard id="automation" title="Automation">
      <Form name="automation" class="stack" action="/api/automations" problem={problem}>
        <Fields draft={draft} choices={choices} />
        <div class="actions">
          <Submit>Create automation</Submit>
          <ButtonLink href={AUTOMATIONS_PATH}>Cancel</ButtonLink>
        </div>
      </Form>
    </TextCard>
  </SettingsFrame>
)

export const AutomationPage: Titled<OneAutomation> = (page) => {
  const { frame, now, done, problem, canWrite, automation, choices, runs } = page
  const action = `/api/automations/${encodeURIComponent(automation.id)}`
  return (
    <SettingsFrame frame={frame} now={now} title={automation.name}>
      <nav class="crumbs" aria-label="Where you are">
        <a href={AUTOMATIONS_PATH}>Automations</a>
      </nav>
      <Outcome done={done} problem={choices ? null : problem} />
      {canWrite && (
        <div class="actions">
          <Action name="run-now" action={`${action}/run-now`} label="Run now" />
          <Action
            name="delete"
            action={`${action}/delete`}
            label="Delete"
            confirm={`Delete ${automation.name}? Its runs are deleted too.`}
            isRisky
          />
        </div>
      )}
      <TextCard id="automation" title="Automation" count={automation.enabled ? 'on' : 'off'}>
        {choices ? (
          <Form name="automation" class="stack" action={action} problem={problem}>
            <Fields draft={automation} choices={choices} />
            <div class="actions">
              <Submit>Save</Submit>
            </div>
          </Form>
        ) : (
          <Facts {...page} />
        )}
      </TextCard>
      <RunList runs={runs} now={now} path={automationPath(automation.id)} />
    </SettingsFrame>
  )
}

AutomationPage.title = ({ automation }) => automation.name

const Facts: FC<OneAutomation> = ({ automation, accounts }) => (
  <ul class="bullets">
    <li>{KIND_NAMES[automation.kind]}</li>
    <li>{scheduleText(automation.schedule)}</li>
    <li>
      {automation.accountScopeAll ? 'All accounts' : accounts.map(({ name }) => name).join(', ') || 'Deleted accounts'}
    </li>
    <li>{automation.model ?? 'The cheapest model of each account'}</li>
  </ul>
)

const Fields: FC<{ draft: AutomationDraft; choices: AutomationChoices }> = ({ draft, choices }) => (
  <>
    <Field
      label="Name"
      name="name"
      value={draft.name}
      maxlength={200}
      placeholder="Start windows on working mornings"
      required
    />
    <Select
      label="What it does"
      name="kind"
      options={[
        ['ping', KIND_NAMES.ping],
        ['probe', KIND_NAMES.probe],
      ]}
      value={draft.kind}
      hint="A check also reads the usage and adds the result to the events of the account."
    />
    <When draft={draft} />
    <Accounts draft={draft} choices={choices} />
    <details class="key-fold">
      <summary>
        <b>Request</b> <span class="muted small">{draft.model ?? 'cheapest model'}</span>
      </summary>
      <div class="stack key-fold-body">
        <Select
          label="Model"
          name="model"
          options={[['', 'The cheapest of each account'], ...withChosenOption(getOptions(choices.models), draft.model)]}
          value={draft.model ?? ''}
        />
        <Select
          label="Reasoning effort"
          name="reasoningEffort"
          options={[['', 'The lowest of the model'], ...plainOptions(choices.efforts)]}
          value={draft.reasoningEffort ?? ''}
        />
        <Field label="Prompt" name="prompt" value={draft.prompt} maxlength={1000} />
      </div>
    </details>
    <Check name="enabled" label="Run at these times" isOn={draft.enabled} />
  </>
)

const When: FC<{ draft: AutomationDraft }> = ({ draft: { schedule } }) => (
  <>
    <div class="automation-when">
      <label class="field">
        <span class="field-label">Time</span>
        <input type="time" name="schedule.time" value={schedule.time} required />
      </label>
      <Field
        label="Time zone"
        name="schedule.timezone"
        value={schedule.timezone}
        hint="A name like Europe/Berlin, or server_default for the zone of the server."
        required
      />
    </div>
    <fieldset class="key-ticks">
      <legend class="field-label">Days</legend>
      <input type="hidden" name="schedule.days" value="" />
      <div class="key-tick-list">
        {Object.entries(DAY_NAMES).map(([day, name]) => (
          <label class="key-tick">
            <input
              type="checkbox"
              name="schedule.days"
              value={day}
              checked={schedule.days.some((chosen) => chosen === day)}
            />
            <span>{name}</span>
          </label>
        ))}
      </div>
    </fieldset>
    <Field
      label="Spread over (minutes)"
      name="schedule.thresholdMinutes"
      type="number"
      value={String(schedule.thresholdMinutes)}
      min={0}
      max={240}
      hint="The first account starts on time, the others at random within these minutes. Use 0 to start all together."
      class="field-short"
    />
  </>
)

/** A list instead of checkboxes: 200 checkboxes would outweigh the rest of the page. */
const Accounts: FC<{ draft: AutomationDraft; choices: AutomationChoices }> = ({ draft, choices }) => (
  <>
    {choices.accounts.length > 0 && (
      <label class="field key-chosen">
        <span class="field-label">Accounts</span>
        <input type="hidden" name="accountIds" value="" />
        <select name="accountIds" multiple size={Math.min(8, choices.accounts.length)}>
          {choices.accounts.map(({ id, name }) => (
            <option value={id} selected={draft.accountIds.includes(id)}>
              {name}
            </option>
          ))}
        </select>
        <span class="hint">Select none to use all accounts, also those added later.</span>
      </label>
    )}
    <Check
      name="includePausedAccounts"
      label="Include paused accounts"
      hint="Accounts that are rate limited, out of quota, deactivated or need sign-in are always skipped."
      isOn={draft.includePausedAccounts}
    />
  </>
)
