/** The first five minutes: three steps with commands that can be pasted as they are, for the address that is really in use. */
import type { FC } from 'hono/jsx'
import type { Overview } from '../src/admin/overview.ts'
import { CheckIcon, CopyIcon } from './ui/icons.tsx'

export const FirstSteps: FC<Overview> = ({ baseUrl, accounts, isKeyRequired }) => (
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
      </li>
      <li class="step">
        <StepHead n={3} title="Point a client here" />
        <p>
          The Codex CLI, in <code>~/.codex/config.toml</code>:
        </p>
        <Command text={codexConfig(baseUrl)} />
        <p>Anything that speaks the OpenAI API:</p>
        <Command text={`export OPENAI_BASE_URL=${baseUrl}/v1\nexport OPENAI_API_KEY=<your key>`} />
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

const Command: FC<{ text: string }> = ({ text }) => (
  <div class="command">
    <pre>
      <code>{text}</code>
    </pre>
    <button class="icon-button" type="button" data-action="copy" title="Copy">
      <CopyIcon />
      <span class="sr">Copy</span>
    </button>
  </div>
)

const codexConfig = (baseUrl: string): string =>
  [
    'model_provider = "sluice"',
    '',
    '[model_providers.sluice]',
    'name = "Sluice"',
    `base_url = "${baseUrl}/backend-api/codex"`,
    'wire_api = "responses"',
    'supports_websockets = true',
    'env_key = "SLUICE_API_KEY"',
    `model_catalog_url = "${baseUrl}/backend-api/codex/models"`,
    'capabilities = { remote_compaction = "v2" }',
  ].join('\n')
