/** The first steps as commands to paste, with this dashboard's address. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import { codexConfig, EXAMPLE_MODEL, KEY_FROM_SHELL, KEY_PLACEHOLDER, variables } from '../keys/snippets.ts'
import { Command } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { CheckIcon } from '../ui/icons.tsx'
import type { Checklist } from './checklist.tsx'

type FirstStepsProps = Pick<Checklist, 'baseUrl' | 'isGuess' | 'command' | 'hasAccount' | 'isKeyRequired'>

export const FirstSteps: FC<FirstStepsProps> = ({ baseUrl, isGuess, command, hasAccount, isKeyRequired }) => (
  <Card id="steps" title={hasAccount ? 'Connect a client' : 'Set up from the command line'}>
    <ol data-guess={isGuess ? baseUrl : undefined}>
      <Step n={1} title="Add an account" isDone={hasAccount}>
        <p>Sign in with the Codex CLI, then import its auth.json. You can name several files.</p>
        <Command text={`${command} accounts import ~/.codex/auth.json`} />
        <p class="muted">
          Run this on the server, in the folder where Sluice is installed. In a container, copy the file in and run{' '}
          <code>sluice accounts import auth.json</code>
        </p>
      </Step>
      <Step n={2} title="Create a key">
        <p>
          {isKeyRequired
            ? 'Every client needs a key. The key is shown once.'
            : 'The key is shown once. Until you require keys, clients on this machine can connect without one.'}
        </p>
        <Command text={`${command} keys create --name my-laptop`} />
        <p>
          Or <a href="/keys/new">create it here</a> and test it.
        </p>
      </Step>
      <Step n={3} title="Connect a client">
        <p>
          For the Codex CLI, in <code>~/.codex/config.toml</code>:
        </p>
        <Command text={codexConfig(baseUrl, KEY_FROM_SHELL, EXAMPLE_MODEL)} />
        <p>For OpenAI SDKs and other clients:</p>
        <Command text={variables({ baseUrl, key: KEY_PLACEHOLDER })} />
      </Step>
    </ol>
  </Card>
)

/** A finished step shows only its title. */
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
