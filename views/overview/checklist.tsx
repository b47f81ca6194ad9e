/** The way to the first answer, for an install that has not given one yet. */
import type { FC } from 'hono/jsx'
import type { Checklist } from '../../src/admin/overview.ts'
import { ButtonLink, IconButton } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { CrossIcon } from '../ui/icons.tsx'
import { FirstSteps, Step } from './first-steps.tsx'

/** It stays until all is done or somebody puts it away. */
export const FirstChecklist: FC<Checklist> = (list) => {
  const { hasAccount, hasKey, hasAnswered } = list
  const steps = stepsOf(list)
  const next = steps.find(({ isDone }) => !isDone)
  return (
    <Card
      id="checklist"
      class="checklist"
      title={hasAccount && hasKey ? 'Almost there' : 'Three steps to the first answer'}
      aside={<IconButton action="put-away" label="Put this list away" icon={CrossIcon} class="card-link" />}
    >
      <ol>
        {steps.map((step, index) => (
          <Step n={index + 1} title={step.title} isDone={step.isDone}>
            <p class="muted">{step.text}</p>
            <p>
              <ButtonLink isMain={step === next} href={step.href}>
                {step.label}
              </ButtonLink>
            </p>
          </Step>
        ))}
      </ol>
      {!hasAnswered && (
        <details class="fold-card checklist-more">
          <summary class="reveal">Do it from a terminal</summary>
          <FirstSteps {...list} />
        </details>
      )}
    </Card>
  )
}

interface Planned {
  title: string
  text: string
  label: string
  href: string
  isDone: boolean
}

const stepsOf = ({ password, hasAccount, hasKey, hasAnswered }: Checklist): Planned[] => [
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
  text: 'There is a key, and nothing has been answered yet.',
  label: 'Open keys',
  href: '/keys',
}
