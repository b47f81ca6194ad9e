/** `/doctor`: every check with its verdict, a sentence and what to do; the browser measures what only it can. */
import type { FC } from 'hono/jsx'
import type { DoctorReport } from '../src/admin/doctor.ts'
import type { Finding, Verdict } from '../src/ops/checks.ts'
import { MEASURES, type MeasureOutcome } from './measures.ts'
import { type Tone, ToneIcon } from './ui/badge.tsx'
import { Card } from './ui/card.tsx'
import { Since } from './ui/time.tsx'

export const VERDICT_TONES: Record<Verdict, Tone> = { ok: 'good', unknown: 'idle', warning: 'wait', problem: 'bad' }

const WORDS: Record<Verdict, { word: string; sentence: string }> = {
  ok: { word: 'OK', sentence: 'All is well' },
  unknown: { word: 'Not known', sentence: 'All is well, as far as it is known' },
  warning: { word: 'Look', sentence: 'Worth a look' },
  problem: { word: 'Problem', sentence: 'Something is wrong' },
}

export const DoctorPage: FC<DoctorReport> = ({ verdict, counts, findings, checkedAt, now }) => (
  <div class="page" data-now={now}>
    <header class="page-head">
      <h1>Doctor</h1>
      <a href="/doctor">Check again</a>
    </header>
    <p class={`health tone-${VERDICT_TONES[verdict]}`}>
      <span class="dot" aria-hidden="true" />
      <strong>{WORDS[verdict].sentence}</strong>
      <span>{summaryOf(counts)}</span>
      <span>
        checked <Since at={checkedAt} now={now} />
      </span>
    </p>
    {findings === null ? (
      <p class="note">What was found, and what to do, is for people who may change security settings.</p>
    ) : (
      <>
        <Card id="server" title="Seen by the server">
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
  problem: ['problem', 'problems'],
  warning: ['thing to look at', 'things to look at'],
  unknown: ['not known', 'not known'],
  ok: ['fine', 'fine'],
}

const summaryOf = (counts: DoctorReport['counts']): string =>
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

/** All outcomes stand in the page; the script shows the one it measured. */
const Measured: FC = () => (
  <Card id="browser" title="Measured from this browser">
    <ul data-measure-now>
      {MEASURES.map(({ title, path, kind, outcomes }) => (
        <li class="finding" data-measure={kind} data-path={path}>
          <h3>{title}</h3>
          <div data-outcome="running">
            <Outcome verdict="unknown" says="Measuring; this needs the page's script." advice={null} />
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
