/** Testing a key: the button, what came of the turn, and what the browser measures on its way here. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import type { KeyTest } from '../../src/admin/key-test.ts'
import { VERDICT_TONES } from '../doctor.tsx'
import { LASTING_MEASURE, MEASURES, type Measure, type MeasureOutcome } from '../measures.ts'
import { dollarText } from '../ui/amounts.ts'
import { type Tone, ToneIcon } from '../ui/badge.tsx'
import { TextCard } from '../ui/card.tsx'
import { Form } from '../ui/form.tsx'
import { durationText } from '../ui/time.tsx'

/** The script adds what lies between the browser and the service; without it the turn alone is tested. */
export const KeyTestForm: FC<{ id: string; whyNot?: string | null }> = ({ id, whyNot = null }) => (
  <TextCard id="test" title="Test">
    <p class="muted">
      Sends one small request through the key, by the route its clients use, and measures what passes between this
      browser and the server.
    </p>
    <Form name="test" action={`/api/api-keys/${id}/test`} target="#key-test">
      <div class="actions">
        <button class="button button-plain" type="submit" disabled={whyNot !== null} data-path-test>
          Test this key
        </button>
        {whyNot && <span class="muted small">{whyNot}</span>}
      </div>
    </Form>
    <div id="key-test" data-result-of="form-test" aria-live="polite" />
    <ul id="path-test" class="key-findings" aria-live="polite" hidden>
      {[...MEASURES, LASTING_MEASURE].map((measure) => (
        <Measured {...measure} />
      ))}
    </ul>
  </TextCard>
)

export const KeyTestResult: FC<KeyTest> = (test) => (
  <ul class="key-findings">
    {test.error === null ? <Answered test={test} /> : <Failed test={test} error={test.error} />}
    {!test.isKeyRequired && (
      <Finding tone="wait">
        <b>Keys are not required yet.</b> Clients on this machine get in without one, and clients on other machines are
        refused until you switch key authentication on.
      </Finding>
    )}
  </ul>
)

const Answered: FC<{ test: KeyTest }> = ({ test }) => (
  <Finding tone="good">
    <b>It works.</b> {test.account ?? 'An account'} answered “{test.text.trim()}” with <code>{test.model}</code>.
    <span class="key-finding-facts muted">{factsOf(test).join(' · ')}</span>
  </Finding>
)

const Failed: FC<{ test: KeyTest; error: NonNullable<KeyTest['error']> }> = ({ test, error }) => (
  <Finding tone="bad">
    <b>It does not work.</b> {ADVICE[error.code] ?? error.message}
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

const factsOf = (test: KeyTest): string[] => [
  ...(test.firstTokenMs === null ? [] : [`first token after ${durationText(test.firstTokenMs)}`]),
  `done after ${durationText(test.totalMs)}`,
  ...(test.inputTokens === null ? [] : [`${test.inputTokens} tokens in, ${test.outputTokens ?? 0} out`]),
  ...(test.costUsd === null ? [] : [dollarText(test.costUsd)]),
  ...(test.attempts > 1 ? [`${test.attempts} attempts`] : []),
]

/** What to do, where the error alone does not say it. */
const ADVICE: Readonly<Record<string, string>> = {
  invalid_api_key: 'The key is switched off, has expired, or its owner is disabled. Nothing was sent.',
  ip_forbidden: 'This browser’s address is not on the firewall list, so a client beside it would be refused, too.',
  model_not_allowed: 'The key may not use this model.',
  rate_limit_exceeded: 'A limit of the key is used up. Raise it, or wait for its reset.',
  no_accounts: 'No account can serve it now. The accounts page says why for each.',
  account_stream_cap: 'Every account has as many streams open as it may. Try again in a moment.',
  upstream_unreachable: 'The upstream could not be reached from here. Look at the network or the egress proxy.',
  upstream_auth_failed: 'The upstream refused the account. Sign it in again on the accounts page.',
  upstream_timeout: 'The upstream took too long.',
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

/** All outcomes stand in the page; the script shows the one it measured. */
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
