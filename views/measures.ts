/** The checks that run in the browser (`views/assets/measures.js`), and the text for each outcome. */
import type { Finding } from '../src/ops/checks.ts'

export type MeasureOutcome = Pick<Finding, 'verdict' | 'says' | 'advice'>

export interface Measure {
  /** The kind of measurement. */
  kind: 'stream' | 'socket' | 'upload' | 'headers' | 'path' | 'lasting'
  title: string
  path: string
  /** By the script's result. `%s`: the time it took. */
  outcomes: Readonly<Record<string, MeasureOutcome>>
}

const NOT_ARRIVED: MeasureOutcome = {
  verdict: 'problem',
  says: 'The stream didn’t arrive.',
  advice: 'Check the log of your reverse proxy for this address.',
}

const NOT_LET_THROUGH: MeasureOutcome = {
  verdict: 'problem',
  says: 'The request was blocked on the way.',
  advice: 'Check the log of your reverse proxy for this address, and whether it forwards the Host header.',
}

const BODY_LIMIT =
  'Raise the body size limit of your reverse proxy. nginx: client_max_body_size 0. Caddy: request_body max_size. ' +
  'For others, see docs/reverse-proxies.md.'

/** Clients have no cookies, so the script sends none either: a proxy's sign-in page would block them. */
const pathMeasure = (prefix: string, path: string, clients: string): Measure => ({
  kind: 'path',
  title: `Path ${prefix}`,
  path,
  outcomes: {
    ok: { verdict: 'ok', says: `Requests to ${prefix} reach Sluice.`, advice: null },
    bad: {
      verdict: 'problem',
      says: `Requests to ${prefix} don’t reach Sluice. Something else answered at ${path}, so ${clients} can’t connect.`,
      advice:
        `Make your reverse proxy forward everything under ${prefix} without a sign-in of its own, ` +
        'because clients send a key and no cookie. See docs/reverse-proxies.md.',
    },
    failed: {
      verdict: 'problem',
      says: `Requests to ${prefix} don’t reach Sluice. Nothing answered at ${path}, so ${clients} can’t connect.`,
      advice: 'Check the log of your reverse proxy for this address.',
    },
  },
})

/** Each takes seconds; they run one after another, so as not to affect each other. */
export const MEASURES: readonly Measure[] = [
  {
    kind: 'stream',
    title: 'Streaming',
    path: '/doctor/stream',
    outcomes: {
      ok: { verdict: 'ok', says: 'Events arrive one by one.', advice: null },
      bad: {
        verdict: 'problem',
        says: 'Events sent 200 ms apart arrived together. Something between your browser and Sluice buffers them.',
        advice:
          'nginx: proxy_buffering off. For others, turn off response buffering and compression of text/event-stream.',
      },
      failed: NOT_ARRIVED,
    },
  },
  {
    kind: 'socket',
    title: 'WebSockets',
    path: '/doctor/socket',
    outcomes: {
      ok: { verdict: 'ok', says: 'A WebSocket opened and echoed a message.', advice: null },
      bad: {
        verdict: 'problem',
        says: 'A WebSocket opened, but no message came back.',
        advice: 'Look for a proxy or firewall that inspects traffic.',
      },
      failed: {
        verdict: 'problem',
        says: 'WebSockets are blocked. The Codex CLI falls back to HTTP, which is slower.',
        advice:
          'nginx: proxy_http_version 1.1, proxy_set_header Upgrade $http_upgrade and Connection "upgrade". ' +
          'Nginx Proxy Manager: turn on Websockets Support.',
      },
    },
  },
  {
    kind: 'upload',
    title: 'Large requests',
    path: '/doctor/upload',
    outcomes: {
      ok: { verdict: 'ok', says: 'A 2 MB request arrived.', advice: null },
      bad: {
        verdict: 'problem',
        says: 'A 2 MB request was rejected as too large. Conversations with files and images are larger than that.',
        advice: BODY_LIMIT,
      },
      broken: {
        verdict: 'problem',
        says: 'A 2 MB request was cut off, most likely by a body size limit.',
        advice: BODY_LIMIT,
      },
      slow: {
        verdict: 'unknown',
        says: 'A 2 MB request took longer than 30 s.',
        advice: 'Your connection may be slow. If not, check the log of your reverse proxy for this address.',
      },
      failed: NOT_LET_THROUGH,
    },
  },
  {
    kind: 'headers',
    title: 'Headers with underscores',
    path: '/doctor/upload',
    outcomes: {
      ok: { verdict: 'ok', says: 'Headers with underscores arrive.', advice: null },
      bad: {
        verdict: 'warning',
        says: 'Headers with underscores are dropped. Older Codex CLIs send session_id, which keeps a conversation on its account.',
        advice: 'nginx: underscores_in_headers on. See docs/reverse-proxies.md.',
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
    open: { verdict: 'unknown', says: 'Open for %s so far. You can leave this page.', advice: null },
    ok: { verdict: 'ok', says: 'Still open after %s.', advice: null },
    bad: {
      verdict: 'problem',
      says: 'Cut off after %s by something between your browser and Sluice.',
      advice: 'Raise the timeout of your reverse proxy (nginx: proxy_read_timeout).',
    },
    failed: NOT_ARRIVED,
  },
}
