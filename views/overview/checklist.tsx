/** The way to the first answer, for an install that has not given one yet. */
import type { FC } from 'hono/jsx'
import type { Checklist } from '../../src/admin/overview.ts'
import { FirstSteps } from '../first-steps.tsx'
import { CheckIcon, CrossIcon } from '../ui/icons.tsx'

/** It stays until all is done or somebody puts it away. */
export const FirstChecklist: FC<Checklist> = (list) => {
  const { password, hasAccount, hasKey, hasAnswered, baseUrl, isKeyRequired } = list
  const steps = stepsOf(list)
  const next = steps.find(({ isDone }) => !isDone)
  return (
    <section class="card checklist" aria-labelledby="checklist-title">
      <header class="card-head">
        <h2 id="checklist-title">{hasAccount && hasKey ? 'Almost there' : 'Three steps to the first answer'}</h2>
        <button class="icon-button card-link" type="button" data-action="put-away" title="Put this list away">
          <CrossIcon />
          <span class="sr">Put this list away</span>
        </button>
      </header>
      <ol class="steps">
        {steps.map((step, index) => (
          <li class={step.isDone ? 'step step-done' : 'step'}>
            <h3>
              <span class="step-number">{step.isDone ? <CheckIcon /> : index + 1}</span>
              {step.title}
              {step.isDone && <span class="muted"> · done</span>}
            </h3>
            {!step.isDone && (
              <>
                <p class="muted">{step.text}</p>
                <p>
                  <a class={step === next ? 'button' : 'button button-plain'} href={step.href}>
                    {step.label}
                  </a>
                </p>
              </>
            )}
          </li>
        ))}
      </ol>
      {!hasAnswered && (
        <details class="fold-card checklist-more">
          <summary class="reveal">Do it from a terminal</summary>
          <FirstSteps baseUrl={baseUrl} accounts={hasAccount ? [password] : []} isKeyRequired={isKeyRequired} />
        </details>
      )}
    </section>
  )
}

interface Step {
  title: string
  text: string
  label: string
  href: string
  isDone: boolean
}

const stepsOf = ({ password, hasAccount, hasKey, hasAnswered }: Checklist): Step[] => [
  ...(password === 'elsewhere' ? [] : [{ ...PASSWORD, isDone: password === 'done' }]),
  { ...ACCOUNT, isDone: hasAccount },
  { ...(hasKey && !hasAnswered ? TEST : KEY), isDone: hasKey && hasAnswered },
]

const PASSWORD = {
  title: 'Set a password',
  text: 'Until then this dashboard opens on this machine only.',
  label: 'Set a password',
  href: '/setup',
}
const ACCOUNT = {
  title: 'Add an account',
  text: 'Sign in with the browser or a device code, or hand over the auth.json of the Codex CLI.',
  label: 'Add an account',
  href: '/accounts/new',
}
const KEY = {
  title: 'Create a key and test it',
  text: 'It is shown once, beside the configuration for your client and a button that tries it.',
  label: 'Create a key',
  href: '/keys/new',
}
const TEST = {
  title: 'Test the key',
  text: 'There is a key, and nothing has been asked with it yet.',
  label: 'Open keys',
  href: '/keys',
}
