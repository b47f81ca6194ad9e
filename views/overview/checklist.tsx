/** The setup checklist of an install that has not answered a request yet. */
import type { FC } from 'hono/jsx'
import { ButtonLink, IconButton } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { CrossIcon } from '../ui/icons.tsx'
import { FirstSteps, Step } from './first-steps.tsx'

export interface Checklist {
  /** The address this browser uses. */
  baseUrl: string
  /** The address comes only from the Host header. */
  isGuess: boolean
  /** The command prefix for a shell on this machine. */
  command: string
  /** `elsewhere`: users sign in without a password. */
  password: 'done' | 'open' | 'elsewhere'
  hasAccount: boolean
  hasKey: boolean
  hasAnswered: boolean
  isKeyRequired: boolean
}

/** Shown until every step is done or the user hides it. */
export const FirstChecklist: FC<Checklist> = (list) => {
  const { hasAccount, hasKey, hasAnswered } = list
  const steps = getSteps(list)
  const next = steps.find(({ isDone }) => !isDone)
  return (
    <Card
      id="checklist"
      class="checklist"
      title={hasAccount && hasKey ? 'Almost there' : 'Get started'}
      aside={<IconButton action="put-away" label="Hide this checklist" icon={CrossIcon} class="card-link" />}
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
          <summary class="reveal">Use the command line</summary>
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

const getSteps = ({ password, hasAccount, hasKey, hasAnswered }: Checklist): Planned[] => [
  ...(password === 'elsewhere' ? [] : [{ ...PASSWORD, isDone: password === 'done' }]),
  { ...ACCOUNT, isDone: hasAccount },
  { ...(hasKey && !hasAnswered ? TEST : KEY), isDone: hasKey && hasAnswered },
]

const PASSWORD = {
  title: 'Set a password',
  text: 'Until then you can open this dashboard only on this machine.',
  label: 'Set a password',
  href: '/setup',
}
const ACCOUNT = {
  title: 'Add an account',
  text: 'Add a ChatGPT account to start serving requests: sign in with your browser or a code, or import auth.json from the Codex CLI.',
  label: 'Add account',
  href: '/accounts/new',
}
const KEY = {
  title: 'Create a key and test it',
  text: 'You get the key, the configuration for your client and a test button.',
  label: 'Create key',
  href: '/keys/new',
}
const TEST = {
  title: 'Test the key',
  text: 'You have a key, but no request has succeeded yet.',
  label: 'Open keys',
  href: '/keys',
}
