/** `/doctor`: every check with its result and what to do. The browser runs the checks that only it can. */
import type { FC } from 'hono/jsx'
import type { Finding, Verdict } from '../src/ops/checks.ts'
import { MEASURES, type MeasureOutcome } from './measures.ts'
import { type Tone, ToneIcon } from './ui/badge.tsx'
import { Card } from './ui/card.tsx'
import { Since } from './ui/time.tsx'

export interface DoctorReport {
  verdict: Verdict
  counts: Record<Verdict, number>
  /** null: the user sees only the summary. */
  findings: Finding[] | null
  /** ISO 8601 */
  checkedAt: string
  /** ISO 8601: when the page was made. */
  now: string
}

export const VERDICT_TONES: Record<Verdict, Tone> = { ok: 'good', unknown: 'idle', warning: 'wait', problem: 'bad' }

const WORDS: Record<Verdict, { word: string; sentence: string }> = {
  ok: { word: 'OK', sentence: 'Everything works' },
  unknown: { word: 'Unknown', sentence: 'No problems found' },
  warning: { word: 'Warning', sentence: 'Warnings found' },
  problem: { word: 'Error', sentence: 'Errors found' },
}

export const DoctorPage: FC<DoctorReport> = ({ verdict, counts, findings, checkedAt, now }) => (
  <div class="page" data-now={now}>
    <header class="page-head">
      <h1>Health check</h1>
      <a href="/doctor">Check again</a>
    </header>
    <p class={`health tone-${VERDICT_TONES[verdict]}`}>
      <span class="dot" aria-hidden="true" />
      <strong>{WORDS[verdict].sentence}</strong>
      <span>{getSummary(counts)}</span>
      <span>
        checked <Since at={checkedAt} now={now} />
      </span>
    </p>
    {findings === null ? (
      <p class="note">You need permission to change security settings to see the results.</p>
    ) : (
      <>
        <Card id="server" title="Checked by the server">
          <ul>
            {findings.map((finding) => (
              <Row {...finding} />
            ))}
          </ul>
        </Card>
        <Measured />
      </>
    )}
  </div>
)

const ORDER: readonly Verdict[] = ['problem', 'warning', 'unknown', 'ok']
const NOUNS: Record<Verdict, [one: string, many: string]> = {
  problem: ['error', 'errors'],
  warning: ['warning', 'warnings'],
  unknown: ['unknown', 'unknown'],
  ok: ['OK', 'OK'],
}

const getSummary = (counts: DoctorReport['counts']): string =>
  ORDER.filter((verdict) => counts[verdict] > 0)
    .map((verdict) => `${counts[verdict]} ${NOUNS[verdict][counts[verdict] === 1 ? 0 : 1]}`)
    .join(', ')

const Row: FC<Finding> = ({ title, ...finding }) => (
  <li class="finding">
    <h3>{title}</h3>
    <Outcome {...finding} />
  </li>
)

const Outcome: FC<MeasureOutcome> = ({ verdict, says, advice }) => (
  <div class="finding-outcome">
    <p class={`finding-verdict tone-${VERDICT_TONES[verdict]}`}>
      <ToneIcon tone={VERDICT_TONES[verdict]} /> {WORDS[verdict].word}
    </p>
    <div class="finding-text">
      <p>{says}</p>
      {advice && <p class="muted">{advice}</p>}
    </div>
  </div>
)

/** Contains all outcomes; the script shows the measured one. */
const Measured: FC = () => (
  <Card id="browser" title="Checked from this browser">
    <ul data-measure-now>
      {MEASURES.map(({ title, path, kind, outcomes }) => (
        <li class="finding" data-measure={kind} data-path={path}>
          <h3>{title}</h3>
          <div data-outcome="running">
            <Outcome verdict="unknown" says="Measuring… (needs JavaScript)" advice={null} />
          </div>
          {Object.entries(outcomes).map(([name, outcome]) => (
            <div data-outcome={name} hidden>
              <Outcome {...outcome} />
            </div>
          ))}
        </li>
      ))}
    </ul>
  </Card>
)
