/** `/doctor`: every check with its verdict, a sentence and what to do; two more are measured by the browser. */
import type { FC } from 'hono/jsx'
import type { DoctorReport } from '../src/admin/doctor.ts'
import type { Finding, Verdict } from '../src/ops/checks.ts'
import type { Tone } from './ui/badge.tsx'
import { CheckIcon, ClockIcon, CrossIcon, WarningIcon } from './ui/icons.tsx'
import { Since } from './ui/time.tsx'

const WORDS: Record<Verdict, { word: string; tone: Tone; icon: FC; sentence: string }> = {
  ok: { word: 'OK', tone: 'good', icon: CheckIcon, sentence: 'All is well' },
  unknown: { word: 'Not known', tone: 'idle', icon: ClockIcon, sentence: 'All is well, as far as it is known' },
  warning: { word: 'Look', tone: 'wait', icon: WarningIcon, sentence: 'Worth a look' },
  problem: { word: 'Problem', tone: 'bad', icon: CrossIcon, sentence: 'Something is wrong' },
}

export const DoctorPage: FC<DoctorReport> = ({ verdict, counts, findings, checkedAt, now }) => (
  <div class="page" data-now={now}>
    <header class="page-head">
      <h1>Doctor</h1>
      <a href="/doctor">Check again</a>
    </header>
    <p class={`health tone-${WORDS[verdict].tone}`}>
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
        <section class="card" aria-labelledby="server-title">
          <header class="card-head">
            <h2 id="server-title">Seen by the server</h2>
          </header>
          <ul>
            {findings.map((finding) => (
              <Row {...finding} />
            ))}
          </ul>
        </section>
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

const Outcome: FC<Pick<Finding, 'verdict' | 'says' | 'advice'>> = ({ verdict, says, advice }) => {
  const { word, tone, icon: Icon } = WORDS[verdict]
  return (
    <div class="finding-outcome">
      <p class={`finding-verdict tone-${tone}`}>
        <Icon /> {word}
      </p>
      <div class="finding-text">
        <p>{says}</p>
        {advice && <p class="muted">{advice}</p>}
      </div>
    </div>
  )
}

/** All outcomes stand in the page; the script shows the one it measured. */
const Measured: FC = () => (
  <section class="card" aria-labelledby="browser-title">
    <header class="card-head">
      <h2 id="browser-title">Measured from this browser</h2>
    </header>
    <ul>
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
  </section>
)

type Outcomes = Record<'ok' | 'bad' | 'failed', Pick<Finding, 'verdict' | 'says' | 'advice'>>

const MEASURES: readonly { kind: string; title: string; path: string; outcomes: Outcomes }[] = [
  {
    kind: 'stream',
    title: 'Streaming',
    path: '/doctor/stream',
    outcomes: {
      ok: { verdict: 'ok', says: 'Events arrive one by one, as they were sent.', advice: null },
      bad: {
        verdict: 'problem',
        says: 'Events that were sent 200 ms apart arrived together: something between here and the server buffers.',
        advice: 'nginx: proxy_buffering off. Others: look for response buffering or compression of text/event-stream.',
      },
      failed: {
        verdict: 'problem',
        says: 'The stream did not arrive.',
        advice: 'Look at the log of the reverse proxy for this address.',
      },
    },
  },
  {
    kind: 'socket',
    title: 'WebSockets',
    path: '/doctor/socket',
    outcomes: {
      ok: { verdict: 'ok', says: 'A socket opened, and a message came back.', advice: null },
      bad: {
        verdict: 'problem',
        says: 'A socket opened, and the message did not come back.',
        advice: 'Look for an inspecting proxy or firewall on the way.',
      },
      failed: {
        verdict: 'problem',
        says: 'No socket could be opened; the Codex CLI goes on over HTTP, which costs it time.',
        advice:
          'nginx: proxy_http_version 1.1, proxy_set_header Upgrade $http_upgrade and Connection "upgrade". ' +
          'Nginx Proxy Manager: switch on Websockets Support.',
      },
    },
  },
]
