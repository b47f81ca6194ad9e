/**
 * `bun tests/clients/fault-table.ts [name…]`: every permanent fault of the stand-in upstream with the Codex CLI,
 * directly and through Sluice with one account: seconds, upstream requests, exit code and the last output. Run
 * manually.
 */
import { inLanes } from '../../src/lib/lanes.ts'
import { createUpstream } from '../support/upstream/app.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'
import { installCodex } from './support/codex.ts'
import { startWorld } from './support/world.ts'

const IN_AN_HOUR_MS = Date.now() + 3_600_000
const ACCOUNT = { email: 'one@example.test', plan: 'plus' } as const

const FAULTS: Readonly<Record<string, Fault>> = {
  'usage limit': faults.usageLimit({ resetsAt: IN_AN_HOUR_MS }),
  'usage not included': faults.usageNotIncluded(),
  'insufficient quota': faults.insufficientQuota(),
  'rate limited': faults.rateLimited(),
  'rate limited, wait 2 s': faults.rateLimited(2),
  '403 JSON': faults.forbidden(),
  '403 HTML': faults.forbiddenHtml(),
  'workspace deactivated': faults.deactivatedWorkspace(),
  '500': faults.serverError(),
  '502 HTML': faults.badGatewayHtml(),
  overloaded: faults.overloaded(),
  'slow down': faults.slowDown(),
  'model not supported': faults.modelNotSupported('gpt-6.1-sol'),
  'model not found': faults.modelNotFound('gpt-6.1-sol'),
  'invalid value': faults.invalidValue(),
  'context length': faults.contextLength(),
  'cyber policy': faults.cyberPolicy(),
  '404 empty': { status: 404, body: '' },
  '451 HTML': { status: 451, body: '<html>no</html>', headers: { 'content-type': 'text/html' } },
  'reset before headers': { reset: true },
  'cut after 10 events': { dropAfter: { events: 10, how: 'fin' } },
  'reset after 10 events': { dropAfter: { events: 10, how: 'reset' }, dripMs: 5 },
  'no terminal event': { omitTerminal: true },
  'response.failed server_error': { failAfterCreated: { code: 'server_error', message: 'Something broke.' } },
  'response.failed overloaded': { failAfterCreated: { code: 'server_is_overloaded', message: 'Overloaded.' } },
  'response.failed usage limit': {
    failAfterCreated: {
      code: 'usage_limit_reached',
      message: 'The usage limit has been reached',
      type: 'usage_limit_reached',
      resets_at: Math.floor(IN_AN_HOUR_MS / 1000),
    },
  },
  'error event': { errorEvent: { code: 'server_error', message: 'Something broke.' } },
  incomplete: { incomplete: { reason: 'max_output_tokens' } },
  'malformed event': { malformedChunk: { afterEvents: 3 } },
  'close 1009': { close: { code: 1009, afterEvents: 0 } },
  'close 1011': { close: { code: 1011, afterEvents: 0 } },
  'close 1012': { close: { code: 1012, afterEvents: 0 } },
  'close 1013': { close: { code: 1013, afterEvents: 0 } },
  'terminate at once': { terminate: { afterEvents: 0 } },
  'handshake 500': { on: 'handshake', status: 500 },
  'handshake 502': { on: 'handshake', status: 502 },
  'handshake 503': { on: 'handshake', status: 503 },
  'handshake 403': { on: 'handshake', status: 403 },
  'handshake 426': { on: 'handshake', status: 426 },
  'handshake reset': { on: 'handshake', reset: true },
  'silent for 5 s': { delayFirstEventMs: 5000 },
}

const SOCKETS_ONLY = /^(close|terminate|handshake)/

interface Outcome {
  seconds: number
  requests: number
  exitCode: number | string
  words: string
}

const brief = (run: Awaited<ReturnType<ReturnType<typeof installCodex>['exec']>>, requests: number): Outcome => ({
  seconds: run.seconds,
  requests,
  exitCode: run.exitCode,
  words: (run.exitCode === 0 ? run.text : (run.complaints.at(-1) ?? run.stderr)).replaceAll(/\s+/g, ' ').slice(0, 150),
})

const tooLong = (requests: number): Outcome => ({ seconds: 60, requests, exitCode: '-', words: '(stopped after 60 s)' })

const isTurn = ({ path }: { path: string }) => path.endsWith('/codex/responses')

const direct = async (fault: Fault, sockets: boolean): Promise<Outcome> => {
  const upstream = createUpstream()
  const account = upstream.addAccount(ACCOUNT)
  const service = upstream.listen()
  const auth = { chatGptLogin: account.authJson() }
  await using codex = installCodex({ baseUrl: `${service.url}/backend-api/codex`, auth, sockets })
  account.always(fault)
  try {
    return brief(await codex.exec('hello'), upstream.requests.filter(isTurn).length)
  } catch {
    return tooLong(upstream.requests.filter(isTurn).length)
  } finally {
    await service.stop()
  }
}

const proxied = async (fault: Fault, sockets: boolean): Promise<Outcome> => {
  await using world = await startWorld({ accounts: [ACCOUNT] })
  await using codex = installCodex({ baseUrl: `${world.url}/backend-api/codex`, auth: { key: world.key }, sockets })
  world.upstream.accounts[0]!.always(fault)
  try {
    return brief(await codex.exec('hello'), world.turns().length)
  } catch {
    return tooLong(world.turns().length)
  }
}

const cell = ({ seconds, requests, exitCode, words }: Outcome): string =>
  `${seconds.toFixed(1)} s, ${requests} req, exit ${exitCode}: ${words}`

const wanted = process.argv.slice(2)
const cases = Object.entries(FAULTS)
  .filter(([name]) => wanted.length === 0 || wanted.includes(name))
  .flatMap(([name, fault]) =>
    (SOCKETS_ONLY.test(name) ? [true] : [false, true]).map((sockets) => ({ name, fault, sockets })),
  )
// The CLI spends most of the time waiting between its retries.
await inLanes(cases, 4, async ({ name, fault, sockets }) => {
  const [straight, through] = await Promise.all([direct(fault, sockets), proxied(fault, sockets)])
  const mark = through.seconds > straight.seconds + 2 ? ' slower' : ''
  console.info(`| ${name} (${sockets ? 'socket' : 'HTTP'}) | ${cell(straight)} | ${cell(through)} |${mark}`)
})
process.exit(0)
