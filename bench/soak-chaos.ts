/** The chaos step: Sluice in front of the strict stand-in while accounts fail in every way the stand-in supports. */
import { seededRandom } from '../src/lib/random.ts'
import { createUpstream, type Upstream } from '../tests/support/upstream/app.ts'
import { type Fault, faults } from '../tests/support/upstream/faults.ts'
import { RESPONSES_PATH, requestBody, requestHeaders, sessionId } from './payload.ts'
import { Skipped, type SoakContext } from './soak-step.ts'
import { makeWorkDir, type RunningTarget, removeWorkDir, seedSluice, sluiceCommand, startSluice } from './targets.ts'

const SECONDS = 120
const CLIENTS = 16
const ACCOUNTS = 5
const FAULT_EVERY_MS = 150
const KILL_EVERY_MS = 20_000
const RECOVERY_MS = 75_000

/** How the requests of all clients ended. `cut`: interrupted by killing the server. */
type Tally = { answered: number; refused: number; failed: number; cut: number; wrong: string[] }

/**
 * Every response must be a stream with exactly one terminal event or a JSON error, whatever fails upstream. Afterwards
 * all accounts must be available within one check interval, and the stand-in must have seen no invalid request.
 */
export async function chaos(context: SoakContext): Promise<string> {
  const command = sluiceCommand(context.useBinary ? 'binary' : 'source')
  if (!command) throw new Skipped(context.useBinary ? 'dist/sluice is missing' : 'src/main.ts is missing')
  const workDir = await makeWorkDir()
  const upstream = createUpstream()
  for (let n = 0; n < ACCOUNTS; n++) upstream.addAccount()
  const listener = upstream.listen()
  const host: Host = { target: null, isDown: true }
  try {
    const authJsons = upstream.accounts.map((account) => account.authJson())
    const seed = await seedSluice(command, listener.url, workDir, { authJsons, transport: 'auto' })
    const start = async () => {
      host.target = await startSluice(seed)
      host.isDown = false
    }
    await start()
    const tally = await underLoad(context, upstream, host, start)
    await recover(upstream, host)
    if (tally.wrong.length > 0) throw new Error(`${tally.wrong.length} wrong answers, first: ${tally.wrong[0]}`)
    if (upstream.oddities.length > 0)
      throw new Error(`${upstream.oddities.length} oddities, first: ${upstream.oddities[0]}`)
    if (tally.answered === 0) throw new Error('no turn was answered at all')
    return `${tally.answered} answered, ${tally.failed} ended in a failure event, ${tally.refused} refused, ${tally.cut} cut by kills`
  } finally {
    await host.target?.child.stop()
    await listener.stop()
    await removeWorkDir(workDir)
  }
}

/** The running server; `isDown` from a kill until the restart is complete. */
type Host = { target: RunningTarget | null; isDown: boolean }

async function underLoad({ seed, scale }: SoakContext, upstream: Upstream, host: Host, start: () => Promise<void>) {
  const tally: Tally = { answered: 0, refused: 0, failed: 0, cut: 0, wrong: [] }
  const random = seededRandom(seed)
  const end = performance.now() + Math.max(10_000, SECONDS * 1000 * scale)
  const isOver = () => performance.now() >= end
  const troublemaker = async () => {
    while (!isOver()) {
      const account = upstream.accounts[Math.floor(random.float() * upstream.accounts.length)]
      account?.next(FAULTS[Math.floor(random.float() * FAULTS.length)] ?? {})
      if (random.float() < 0.02) account?.expireAccessToken()
      await Bun.sleep(FAULT_EVERY_MS)
    }
  }
  const killer = async () => {
    for (;;) {
      await Bun.sleep(Math.min(KILL_EVERY_MS, Math.max(3_000, SECONDS * 250 * scale)))
      if (isOver() || !host.target) return
      host.isDown = true
      process.kill(host.target.child.pid, 'SIGKILL')
      await host.target.child.stop()
      // Responses to the restart's own trial requests must not fail, or a slow start would look like an error.
      for (const account of upstream.accounts) account.clearFaults()
      await start()
    }
  }
  await Promise.all([
    troublemaker(),
    killer(),
    ...Array.from({ length: CLIENTS }, (_, n) => client(n, host, tally, isOver)),
  ])
  return tally
}

async function client(n: number, host: Host, tally: Tally, isOver: () => boolean): Promise<void> {
  const id = sessionId(n)
  const body = requestBody('2kb', id)
  while (!isOver()) {
    const target = host.target
    if (!target || host.isDown) {
      await Bun.sleep(20)
      continue
    }
    const outcome = await turn(target, id, body).catch((error: unknown) => `broken: ${error}`)
    if (outcome === 'answered' || outcome === 'refused' || outcome === 'failed') tally[outcome] += 1
    else if (host.isDown || host.target !== target) tally.cut += 1
    else tally.wrong.push(outcome)
    if (outcome !== 'answered') await Bun.sleep(50)
  }
}

const TERMINAL: readonly unknown[] = ['response.completed', 'response.failed', 'response.incomplete', 'error']

async function turn(target: RunningTarget, id: string, body: string): Promise<string> {
  const response = await fetch(target.url + RESPONSES_PATH, {
    method: 'POST',
    headers: requestHeaders(id, target.apiKey),
    body,
  })
  const text = await response.text()
  if (response.status !== 200) {
    const isEnvelope = text.startsWith('{"error":{') && response.status !== 401
    return isEnvelope ? 'refused' : `status ${response.status}: ${text.slice(0, 300)}`
  }
  const terminals = eventTypes(text).filter((type) => TERMINAL.includes(type))
  if (terminals.length !== 1) return `${terminals.length} terminal events: …${text.slice(-300)}`
  return terminals[0] === 'response.completed' || terminals[0] === 'response.incomplete' ? 'answered' : 'failed'
}

function eventTypes(text: string): unknown[] {
  const payloads = text.split('\n').filter((line) => line.startsWith('data:'))
  return payloads.map((line) => {
    try {
      return (JSON.parse(line.slice(5)) as { type?: unknown } | null)?.type // any JSON value has or lacks it
    } catch {
      return null
    }
  })
}

/** Without faults each account must serve again, and no upstream stream may be open. */
async function recover(upstream: Upstream, host: Host): Promise<void> {
  for (const account of upstream.accounts) account.clearFaults()
  const since = Date.now()
  const deadline = performance.now() + RECOVERY_MS
  const silent = new Set(upstream.accounts.map((account) => account.chatgptAccountId))
  for (let n = 0; silent.size > 0; n++) {
    if (performance.now() > deadline)
      throw new Error(`${silent.size} accounts serve nothing ${RECOVERY_MS} ms after the last fault`)
    if (host.target) await turn(host.target, sessionId(1_000 + n), requestBody('2kb', sessionId(1_000 + n)))
    const served = upstream.requests.filter(
      ({ path, at, finished }) => path.endsWith('/responses') && at >= since && finished,
    )
    for (const { account, status } of served) if (status === 200) silent.delete(account ?? '')
    await Bun.sleep(20)
  }
  if (upstream.openStreams > 0) throw new Error(`${upstream.openStreams} upstream streams are still open`)
}

const FAULTS: readonly Fault[] = [
  faults.serverError(),
  faults.badGatewayHtml(),
  faults.overloaded(),
  faults.slowDown(1),
  faults.rateLimited(1),
  faults.rateLimited(),
  faults.forbiddenHtml(),
  { reset: true },
  { delayHeadersMs: 300 },
  { delayFirstEventMs: 300 },
  { dripMs: 5 },
  { rateLimitsEvent: true },
  { failAfterCreated: { code: 'server_error', message: 'The model failed.' } },
  { failAfterCreated: { code: 'rate_limit_exceeded', message: 'Please try again in 1s.' } },
  { failAfterCreated: { code: 'server_error', message: 'The model failed.', afterEvents: 5 } },
  { errorEvent: { code: 'server_error', message: 'The model failed.' } },
  { incomplete: { reason: 'max_output_tokens' } },
  { manyEvents: { count: 2_000, bytes: 200, perChunk: 10 } },
  { malformedChunk: { afterEvents: 5 } },
  { dropAfter: { events: 1, how: 'reset' } },
  { dropAfter: { events: 6, how: 'fin' } },
  { dropAfter: { events: 6, how: 'reset' } },
  { omitTerminal: true },
]
