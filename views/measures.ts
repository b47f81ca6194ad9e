/** What a browser can measure of its way here, and what each outcome is in words; `views/assets/measures.js` measures. */
import type { Finding } from '../src/ops/checks.ts'

export type MeasureOutcome = Pick<Finding, 'verdict' | 'says' | 'advice'>

export interface Measure {
  /** What the script does. */
  kind: 'stream' | 'socket' | 'lasting'
  title: string
  path: string
  /** By what the script finds. `%s`: after how long. */
  outcomes: Readonly<Record<string, MeasureOutcome>>
}

const NOT_ARRIVED: MeasureOutcome = {
  verdict: 'problem',
  says: 'The stream did not arrive.',
  advice: 'Look at the log of the reverse proxy for this address.',
}

/** Both are over within seconds. */
export const MEASURES: readonly Measure[] = [
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
      failed: NOT_ARRIVED,
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

/** Takes a minute and a half. */
export const LASTING_MEASURE: Measure = {
  kind: 'lasting',
  title: 'Long connections',
  path: '/doctor/stream?lasting=true',
  outcomes: {
    open: { verdict: 'unknown', says: 'Open for %s so far; you may leave.', advice: null },
    ok: { verdict: 'ok', says: 'Still open after %s.', advice: null },
    bad: {
      verdict: 'problem',
      says: 'Cut after %s by something between here and the server.',
      advice: 'Raise the time limit there (nginx: proxy_read_timeout).',
    },
    failed: NOT_ARRIVED,
  },
}
