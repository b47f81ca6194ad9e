/** What a browser can measure of its way here, and what each outcome is in words; `views/assets/measures.js` measures. */
import type { Finding } from '../src/ops/checks.ts'

export type MeasureOutcome = Pick<Finding, 'verdict' | 'says' | 'advice'>

export interface Measure {
  /** What the script does. */
  kind: 'stream' | 'socket' | 'upload' | 'headers' | 'path' | 'lasting'
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

const NOT_LET_THROUGH: MeasureOutcome = {
  verdict: 'problem',
  says: 'The request was not let through.',
  advice: 'Look at the log of the reverse proxy for this address, and whether it passes the Host header on.',
}

const BODY_LIMIT =
  'Raise the limit on bodies there. nginx: client_max_body_size 0. Caddy: request_body max_size. ' +
  'docs/reverse-proxies.md has it for others.'

/** Clients come without cookies, so the script asks without them, too: a sign-in of the proxy is in their way. */
const pathMeasure = (prefix: string, path: string, clients: string): Measure => ({
  kind: 'path',
  title: `Way to ${prefix}`,
  path,
  outcomes: {
    ok: { verdict: 'ok', says: `Requests to ${prefix} arrive here.`, advice: null },
    bad: {
      verdict: 'problem',
      says: `${prefix} does not arrive here: something else answered at ${path}, so ${clients} cannot work.`,
      advice:
        `Let the reverse proxy pass everything below ${prefix} on, without a sign-in of its own: ` +
        'clients bring a key and no cookie. docs/reverse-proxies.md has it in full.',
    },
    failed: {
      verdict: 'problem',
      says: `${prefix} does not arrive here: nothing answered at ${path}, so ${clients} cannot work.`,
      advice: 'Look at the log of the reverse proxy for this address.',
    },
  },
})

/** Each is over within seconds; made one after the other, so that none is in the way of another. */
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
  {
    kind: 'upload',
    title: 'Large requests',
    path: '/doctor/upload',
    outcomes: {
      ok: { verdict: 'ok', says: 'A request of 2 MB arrived whole.', advice: null },
      bad: {
        verdict: 'problem',
        says: 'A request of 2 MB was refused as too large; conversations with files and images are larger than that.',
        advice: BODY_LIMIT,
      },
      broken: {
        verdict: 'problem',
        says: 'A request of 2 MB was broken off on the way, most likely by a limit on bodies.',
        advice: BODY_LIMIT,
      },
      slow: {
        verdict: 'unknown',
        says: 'A request of 2 MB took longer than half a minute.',
        advice: 'The line may be slow; else look at the log of the reverse proxy for this address.',
      },
      failed: NOT_LET_THROUGH,
    },
  },
  {
    kind: 'headers',
    title: 'Headers with underscores',
    path: '/doctor/upload',
    outcomes: {
      ok: { verdict: 'ok', says: 'They arrive.', advice: null },
      bad: {
        verdict: 'warning',
        says: 'They are dropped on the way. session_id of older Codex CLIs is one: it keeps a conversation on its account.',
        advice: 'nginx: underscores_in_headers on. docs/reverse-proxies.md has it in full.',
      },
      failed: NOT_LET_THROUGH,
    },
  },
  pathMeasure('/v1', '/v1/models', 'the OpenAI SDKs'),
  pathMeasure('/backend-api', '/backend-api/codex/models', 'the Codex CLI'),
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
