/** The calls of the dialer and their routes: every call for an account uses the account's, as the types require. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '../..')

/** Methods of the dialler that reach for the network or decide how → number of arguments, the route last; 0: it takes none. */
const METHODS: Readonly<Record<string, number>> = { fetch: 3, fetchAt: 0, socketAgent: 2, isProxied: 2, canConnect: 2 }

/**
 * File and method → the route of its calls. A new caller adds its line here. `NOT_FOR_AN_ACCOUNT` is for calls without
 * an account token; every other route comes with the credentials, the sign-in or the account.
 */
const CALLERS: Readonly<Record<string, readonly string[]>> = {
  // usage, reset credits (list and redeem), model catalogs
  'src/upstream/account-call.ts fetch': ['account.route'],
  'src/upstream/probe.ts fetch': ['account.route'],
  // model requests over HTTP, and relayed ones: images, audio, files, control, warm-up, live calls
  'src/upstream/open.ts fetch': ['account.route'],
  'src/upstream/open.ts canConnect': ['account.route'],
  // turns over WebSocket
  'src/upstream/open.ts socketAgent': ['account.route'],
  // the WebSocket of a live call
  'src/proxy/relay/sideband.ts socketAgent': ['credentials.route'],
  // sign-ins by a code and on another device, and token refreshes
  'src/upstream/oauth.ts fetch': ['route', 'context.route'],
  // whether a client is the owner of an account
  'src/proxy/ingress/owner-proofs.ts fetch': ['route'],
  'src/proxy/exchange/transport.ts isProxied': ['route', 'route'],
  // the endpoint that is tested
  'src/upstream/egress-test.ts fetch': ['route'],
  // model sources and receivers of alerts, which have no account
  'src/upstream/guarded-fetch.ts fetchAt': ['no route'],
  'src/upstream/guarded-fetch.ts isProxied': ['NOT_FOR_AN_ACCOUNT'],
  // the doctor: whether ChatGPT can be reached at all, without a token
  'src/ops/upstream-checks.ts fetch': ['NOT_FOR_AN_ACCOUNT'],
  'src/ops/upstream-checks.ts socketAgent': ['NOT_FOR_AN_ACCOUNT'],
  'src/ops/upstream-checks.ts isProxied': ['NOT_FOR_AN_ACCOUNT'],
  'src/ops/upstream-checks.ts canConnect': ['NOT_FOR_AN_ACCOUNT'],
}

interface Call {
  name: string
  args: string[]
}

/** Calls of `dial.<method>` in a source, with their arguments as text. */
const callsIn = (path: string, source: string): Call[] => {
  const pattern = new RegExp(`\\bdial\\s*\\.\\s*(${Object.keys(METHODS).join('|')})\\s*\\(`, 'g')
  return [...source.matchAll(pattern)].map((found) => ({
    name: `${path} ${found[1]}`,
    args: argumentsFrom(source, found.index + found[0].length),
  }))
}

const argumentsFrom = (source: string, start: number): string[] => {
  const args: string[] = []
  let depth = 0
  let from = start
  let quote = ''
  for (let at = start; at < source.length; at++) {
    const char = source[at] ?? ''
    if (quote !== '') {
      if (char === '\\') at++
      else if (char === quote) quote = ''
    } else if (`'"\``.includes(char)) quote = char
    else if ('([{'.includes(char)) depth++
    else if (char === ',' && depth === 0) {
      args.push(source.slice(from, at).trim())
      from = at + 1
    } else if (')]}'.includes(char) && --depth < 0) {
      args.push(source.slice(from, at).trim())
      break
    }
  }
  return args.filter((text) => text !== '')
}

const sources = [...new Bun.Glob('src/**/*.{ts,tsx}').scanSync({ cwd: ROOT })].sort().map((path) => ({
  path,
  text: readFileSync(join(ROOT, path), 'utf8'),
}))
const calls = sources
  .filter(({ path }) => path !== 'src/upstream/dial.ts')
  .flatMap(({ path, text }) => callsIn(path, text))

test('every call of the dialer is listed, with its route', () => {
  const found: Record<string, string[]> = {}
  for (const { name, args } of calls) {
    const method = name.slice(name.lastIndexOf(' ') + 1)
    found[name] = [...(found[name] ?? []), args[(METHODS[method] ?? 0) - 1] ?? 'no route']
  }
  expect(found).toEqual(CALLERS as Record<string, string[]>)
})

test('no call reads the environment itself', () => {
  const users = sources
    .filter(({ path }) => path !== 'src/upstream/dial.ts') // in a comment
    .filter(({ text }) => /\b(AS_ENVIRONMENT|NOT_FOR_AN_ACCOUNT)\b/.test(text))
    .map(({ path }) => path)
  expect(users).toEqual([
    'src/model/egress/route.ts',
    'src/model/egress/routes.ts',
    'src/ops/upstream-checks.ts',
    'src/upstream/guarded-fetch.ts',
  ])
  const literal = sources.filter(({ text }) => /kind: 'environment'/.test(text)).map(({ path }) => path)
  expect(literal).toEqual(['src/model/egress/route.ts'])
})

test('the dialer is not passed on in parts, where its calls could not be found', () => {
  const pieces = sources
    .filter(({ path }) => path !== 'src/upstream/dial.ts')
    .flatMap(({ path, text }) =>
      [...text.matchAll(/\{[^{}]*\b(fetch|socketAgent)\b[^{}]*\}\s*=\s*\w*dial\b/gi)].map(() => path),
    )
  expect(pieces).toEqual([])
})

test('everything that opens sockets is listed: the dialer, proxies, local ports, and handshakes with an agent', () => {
  const opens = /\b(createConnection|connectTls|SocksClient|new WebSocket\(|Bun\.connect|(?:http|https)\.request\()/
  expect(sources.filter(({ text }) => opens.test(text)).map(({ path }) => path)).toEqual([
    'src/ops/upstream-checks.ts',
    'src/upstream/dial.ts',
    'src/upstream/socket.ts',
    'src/upstream/tunnel-agent.ts',
    'src/upstream/tunnel.ts',
  ])
})

describe('the check detects violations', () => {
  test.each([
    ["dial.fetch(url, { headers: { a: 'b, c' }, signal })", ['url', "{ headers: { a: 'b, c' }, signal }"]],
    ['dial\n  .fetch(url, init, account.route)', ['url', 'init', 'account.route']],
    ['this.#deps.upstream.dial.fetch(`a, (b`, {}, route,)', ['`a, (b`', '{}', 'route']],
  ])('%s', (source, args) => {
    expect(callsIn('a.ts', source)).toEqual([{ name: 'a.ts fetch', args }])
  })
})
