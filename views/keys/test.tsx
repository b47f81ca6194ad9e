/** Testing a key: the button, the result, and the browser's measurements. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import { VERDICT_TONES } from '../doctor.tsx'
import { LASTING_MEASURE, MEASURES, type Measure, type MeasureOutcome } from '../measures.ts'
import { dollarText } from '../ui/amounts.ts'
import { type Tone, ToneIcon } from '../ui/badge.tsx'
import { TextCard } from '../ui/card.tsx'
import { Form } from '../ui/form.tsx'
import { durationText } from '../ui/time.tsx'

export interface KeyTest {
  isOk: boolean
  keyId: string
  requestId: string
  /** Row in the request log; null: rejected before it was logged. */
  logId: string | null
  /** null: no model is known yet, so nothing was sent. */
  model: string | null
  account: string | null
  /** Accounts that were tried. */
  attempts: number
  /** From sending to the first text, ms. */
  firstTokenMs: number | null
  totalMs: number
  inputTokens: number | null
  outputTokens: number | null
  costUsd: number | null
  /** The beginning of the answer. */
  text: string
  error: { status: number; code: string; message: string } | null
  /** false: clients on this machine can connect without a key, all others are rejected. */
  isKeyRequired: boolean
}

/** The script also measures the path between the browser and Sluice; without it only the request is tested. */
export const KeyTestForm: FC<{ id: string; whyNot?: string | null }> = ({ id, whyNot = null }) => (
  <TextCard id="test" title="Test">
    <p class="muted">
      Sends one small request with this key and measures the connection between this browser and Sluice.
    </p>
    <Form name="test" action={`/api/api-keys/${id}/test`} target="#key-test">
      <div class="actions">
        <select name="dialect" class="key-test-as" aria-label="Send it as">
          <option value="responses">As an OpenAI client</option>
          <option value="messages">As Claude Code</option>
        </select>
        <button class="button button-plain" type="submit" disabled={whyNot !== null} data-path-test>
          Test key
        </button>
        {whyNot && <span class="muted small">{whyNot}</span>}
      </div>
    </Form>
    <div id="key-test" data-result-of="form-test" aria-live="polite" />
    <ul id="path-test" class="key-findings" aria-live="polite" data-src="/doctor/checks" hidden />
  </TextCard>
)

export const KeyTestChecks: FC = () => (
  <>
    {[...MEASURES, LASTING_MEASURE].map((measure) => (
      <Measured {...measure} />
    ))}
  </>
)

export const KeyTestResult: FC<KeyTest> = (test) => (
  <ul class="key-findings">
    {test.error === null ? <Answered test={test} /> : <Failed test={test} error={test.error} />}
    {!test.isKeyRequired && (
      <Finding tone="wait">
        <b>Keys are optional.</b> Clients on this machine can connect without one. Clients on other machines are
        rejected until you turn on “Require an API key”.
      </Finding>
    )}
  </ul>
)

const Answered: FC<{ test: KeyTest }> = ({ test }) => (
  <Finding tone="good">
    <b>It works.</b> {test.account ?? 'An account'} answered “{test.text.trim()}” using <code>{test.model}</code>.
    <span class="key-finding-facts muted">{getFacts(test).join(' · ')}</span>
  </Finding>
)

const Failed: FC<{ test: KeyTest; error: NonNullable<KeyTest['error']> }> = ({ test, error }) => (
  <Finding tone="bad">
    <b>The test failed.</b> {ADVICE[error.code] ?? error.message}
    <span class="key-finding-facts muted">
      <code>
        {error.status} {error.code}
      </code>
      {ADVICE[error.code] && ` · ${error.message}`}
      {test.account && ` · ${test.account}`}
      {test.attempts > 1 && ` · ${test.attempts} attempts`}
    </span>
  </Finding>
)

const getFacts = (test: KeyTest): string[] => [
  ...(test.firstTokenMs === null ? [] : [`first token after ${durationText(test.firstTokenMs)}`]),
  `finished after ${durationText(test.totalMs)}`,
  ...(test.inputTokens === null ? [] : [`${test.inputTokens} tokens in, ${test.outputTokens ?? 0} out`]),
  ...(test.costUsd === null ? [] : [dollarText(test.costUsd)]),
  ...(test.attempts > 1 ? [`${test.attempts} attempts`] : []),
]

/** Advice where the error message has none. */
const ADVICE: Readonly<Record<string, string>> = {
  invalid_api_key: 'The key is turned off or expired, or its owner is disabled. No request was sent.',
  ip_forbidden: 'The firewall does not allow this browser’s address. Clients on the same network are rejected too.',
  model_not_allowed: 'This key cannot use this model.',
  rate_limit_exceeded: 'This key has reached a limit. Raise the limit or wait until it resets.',
  no_accounts: 'No account is available. See Accounts for the reason of each.',
  account_stream_cap: 'Every account has reached its limit of parallel requests. Try again in a moment.',
  upstream_unreachable: 'Sluice could not reach ChatGPT. Check the network and the outgoing proxy.',
  upstream_auth_failed: 'ChatGPT rejected the account’s sign-in. Sign in again on the Accounts page.',
  upstream_timeout: 'ChatGPT did not answer in time.',
}

const Finding: FC<PropsWithChildren<{ tone: Tone }>> = ({ tone, children }) => (
  <li>
    <Line tone={tone}>{children}</Line>
  </li>
)

const Line: FC<PropsWithChildren<{ tone: Tone }>> = ({ tone, children }) => (
  <p class={`key-finding tone-${tone}`}>
    <ToneIcon tone={tone} />
    <span>{children}</span>
  </p>
)

/** Contains all outcomes; the script shows the measured one. */
const Measured: FC<Measure> = ({ kind, title, path, outcomes }) => (
  <li data-measure={kind} data-path={path}>
    <div data-outcome="running">
      <Line tone="idle">
        <b>{title}.</b> Measuring …
      </Line>
    </div>
    {Object.entries(outcomes).map(([name, outcome]) => (
      <div data-outcome={name} hidden>
        <Line tone={VERDICT_TONES[outcome.verdict]}>
          <b>{title}.</b> <Words {...outcome} />
        </Line>
      </div>
    ))}
  </li>
)

const Words: FC<MeasureOutcome> = ({ says, advice }) => {
  const [before, after] = says.split('%s')
  return (
    <>
      {before}
      {after !== undefined && <span data-after />}
      {after}
      {advice && ` ${advice}`}
    </>
  )
}
