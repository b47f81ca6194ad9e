/** The first five minutes: three steps with commands that can be pasted as they are, for the address that is really in use. */
import type { FC } from 'hono/jsx'
import { Command } from './keys/connect.tsx'
import { codexConfig, KEY_FROM_SHELL, KEY_PLACEHOLDER, variables } from './keys/snippets.ts'
import { CheckIcon } from './ui/icons.tsx'

interface FirstStepsProps {
  /** Where a client reaches the service. */
  baseUrl: string
  accounts: readonly unknown[]
  isKeyRequired: boolean
}

export const FirstSteps: FC<FirstStepsProps> = ({ baseUrl, accounts, isKeyRequired }) => (
  <section class="card" aria-labelledby="steps-title">
    <header class="card-head">
      <h2 id="steps-title">{accounts.length === 0 ? 'Three steps to the first answer' : 'Connect a client'}</h2>
    </header>
    <ol class="steps">
      <li class={accounts.length > 0 ? 'step step-done' : 'step'}>
        <StepHead n={1} title="Add an account" isDone={accounts.length > 0} />
        {accounts.length === 0 && (
          <>
            <p>Sign in once with the Codex CLI, then hand over the file it wrote. Several files at once are fine.</p>
            <Command text={`curl -F auth_json=@"$HOME/.codex/auth.json" ${baseUrl}/api/accounts/import`} />
            <p class="muted">
              In a container, with the file copied in: <code>sluice accounts import auth.json</code>
            </p>
          </>
        )}
      </li>
      <li class="step">
        <StepHead n={2} title="Create a key" />
        <p>
          {isKeyRequired
            ? 'Every client needs one. It is shown once.'
            : 'On this machine clients may go without one until you require keys. It is shown once.'}
        </p>
        <Command text={`curl -H 'content-type: application/json' -d '{"name":"my-laptop"}' ${baseUrl}/api/api-keys/`} />
        <p>
          Or <a href="/keys/new">create it here</a>, with everything to paste and a test beside it.
        </p>
      </li>
      <li class="step">
        <StepHead n={3} title="Point a client here" />
        <p>
          The Codex CLI, in <code>~/.codex/config.toml</code>:
        </p>
        <Command text={codexConfig(baseUrl, KEY_FROM_SHELL)} />
        <p>Anything that speaks the OpenAI API:</p>
        <Command text={variables({ baseUrl, key: KEY_PLACEHOLDER })} />
      </li>
    </ol>
  </section>
)

const StepHead: FC<{ n: number; title: string; isDone?: boolean }> = ({ n, title, isDone = false }) => (
  <h3>
    <span class="step-number">{isDone ? <CheckIcon /> : n}</span>
    {title}
    {isDone && <span class="muted"> · done</span>}
  </h3>
)
