/** The first five minutes: three steps with commands that can be pasted as they are, for the address that is really in use. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import type { Checklist } from '../../src/admin/overview.ts'
import { codexConfig, EXAMPLE_MODEL, KEY_FROM_SHELL, KEY_PLACEHOLDER, variables } from '../keys/snippets.ts'
import { Command } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { CheckIcon } from '../ui/icons.tsx'

type FirstStepsProps = Pick<Checklist, 'baseUrl' | 'isGuess' | 'command' | 'hasAccount' | 'isKeyRequired'>

export const FirstSteps: FC<FirstStepsProps> = ({ baseUrl, isGuess, command, hasAccount, isKeyRequired }) => (
  <Card id="steps" title={hasAccount ? 'Connect a client' : 'The three steps as commands'}>
    <ol data-guess={isGuess ? baseUrl : undefined}>
      <Step n={1} title="Add an account" isDone={hasAccount}>
        <p>Sign in once with the Codex CLI, then hand over the file it wrote. Several files at once are fine.</p>
        <Command text={`${command} accounts import ~/.codex/auth.json`} />
        <p class="muted">
          On the machine of this service, in its folder. In a container, with the file copied in:{' '}
          <code>sluice accounts import auth.json</code>
        </p>
      </Step>
      <Step n={2} title="Create a key">
        <p>
          {isKeyRequired
            ? 'Every client needs one. It is shown once.'
            : 'On this machine clients may go without one until you require keys. It is shown once.'}
        </p>
        <Command text={`${command} keys create --name my-laptop`} />
        <p>
          Or <a href="/keys/new">create it here</a>, with everything to paste and a test beside it.
        </p>
      </Step>
      <Step n={3} title="Point a client here">
        <p>
          The Codex CLI, in <code>~/.codex/config.toml</code>:
        </p>
        <Command text={codexConfig(baseUrl, KEY_FROM_SHELL, EXAMPLE_MODEL)} />
        <p>Anything that speaks the OpenAI API:</p>
        <Command text={variables({ baseUrl, key: KEY_PLACEHOLDER })} />
      </Step>
    </ol>
  </Card>
)

/** Done, it is its title alone. */
export const Step: FC<PropsWithChildren<{ n: number; title: string; isDone?: boolean }>> = (step) => (
  <li class={step.isDone ? 'step step-done' : 'step'}>
    <h3>
      <span class="step-number">{step.isDone ? <CheckIcon /> : step.n}</span>
      {step.title}
      {step.isDone && <span class="muted"> · done</span>}
    </h3>
    {!step.isDone && step.children}
  </li>
)
