/**
 * The least that does what no turn of Sluice may be without, made of its own parts: knows the key, parses the body, tells the
 * events apart, writes the log. No gates, no choice of an account, no limits, no second try. What it costs over the floor
 * cannot be saved by anything around these parts.
 */
import { openDatabase } from '../db/open.ts'
import { systemClock } from '../src/lib/clock.ts'
import { createLog } from '../src/lib/log.ts'
import { systemRandom } from '../src/lib/random.ts'
import { SseScanner } from '../src/lib/sse.ts'
import { listAccounts } from '../src/model/accounts/accounts.ts'
import { type KeyPolicy, KeyRing } from '../src/model/keys/key-ring.ts'
import { getPlaces } from '../src/ops/places.ts'
import { Ledger } from '../src/proxy/ledger/ledger.ts'
import { conversationHash } from '../src/proxy/pool/affinity.ts'
import { Meter } from '../src/proxy/turn/meter.ts'
import { forwardable, upstreamHeaders } from '../src/upstream/headers.ts'

const upstream = process.env.BENCH_UPSTREAM_URL ?? 'http://127.0.0.1:9'
const { databasePath } = getPlaces({ DATA_DIR: process.env.BENCH_DATA_DIR ?? '', ENCRYPTION_KEY_FILE: undefined })
const { sqlite, db } = openDatabase(databasePath)
const keys = new KeyRing(db)
const accounts = listAccounts(db).map(({ id, chatgptAccountId }) => ({
  id,
  chatgptAccountId,
  accessToken: 'x'.repeat(800),
}))
const log = createLog({ level: 'error', format: 'text', now: systemClock.now, write: console.error })
const ledger = new Ledger({ sqlite, db, clock: systemClock, log })
ledger.start()

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: Number(process.env.PORT ?? 0),
  development: false,
  idleTimeout: 0,
  fetch: serve,
})
console.log(JSON.stringify({ port: server.port }))

interface Turn {
  id: string
  requestId: string
  key: KeyPolicy
  accountId: string
  model: string
  conversation: string | null
  /** ms since epoch, and on the monotonic clock */
  startedAt: number
  arrivedAt: number
  firstMs: number
}

async function serve(request: Request): Promise<Response> {
  const { headers } = request
  const [startedAt, arrivedAt] = [systemClock.now(), systemClock.monotonic()]
  const key = keys.find(headers.get('authorization')?.slice('Bearer '.length) ?? '')
  if (!key) return new Response(null, { status: 401 })
  const body = await request.bytes()
  const { model } = JSON.parse(new TextDecoder().decode(body)) as { model: string } // only the benchmark's driver calls this
  const account = accounts[startedAt % accounts.length]! // there are some
  const conversation = conversationHash(headers, null, key.id)
  const [id, requestId] = [systemRandom.orderedId('trn', startedAt), systemRandom.orderedId('req', startedAt)]
  const kind = { accept: 'text/event-stream', contentType: 'application/json' }
  const answer = await fetch(upstream + request.url.slice(request.url.indexOf('/', 8)), {
    method: 'POST',
    headers: upstreamHeaders({ ...forwardable(headers), 'x-request-id': requestId }, account, kind),
    body,
    signal: request.signal,
    proxy: false,
    timeout: false,
    redirect: 'manual',
  } as RequestInit) // as in floor.ts
  const firstMs = systemClock.monotonic() - arrivedAt
  const turn = { id, requestId, key, accountId: account.id, model, conversation, startedAt, arrivedAt, firstMs }
  return new Response(answer.body && relay(answer.body, turn), {
    status: answer.status,
    headers: { 'content-type': 'text/event-stream', 'x-request-id': requestId },
  })
}

function relay(body: ReadableStream<Uint8Array>, turn: Turn): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const scanner = new SseScanner({ inRuns: true })
  const meter = new Meter()
  let isRecorded = false
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read()
      if (done) return controller.close()
      for (const event of scanner.push(value)) meter.see(event)
      controller.enqueue(value)
      if (meter.terminal && !isRecorded) record(turn, meter)
      isRecorded = meter.terminal !== null
    },
    cancel() {
      reader.cancel().catch(() => {})
    },
  })
}

function record({ key, accountId, model, ...turn }: Turn, { usage, responseId }: Meter): void {
  const durationMs = systemClock.monotonic() - turn.arrivedAt
  const considered = accounts.map(({ id }) => ({ id, score: 1134, skipped: null, until: null }))
  const attempt = { n: 1, accountId, startedAt: turn.startedAt, durationMs, considered, code: null, message: null }
  ledger.record({
    row: {
      id: turn.id,
      requestId: turn.requestId,
      startedAt: turn.startedAt,
      route: '/backend-api/codex/responses',
      kind: 'normal',
      transport: 'http',
      upstreamTransport: 'http',
      keyId: key.id,
      accountId,
      model,
      serviceTier: null,
      responseId,
      conversationHash: turn.conversation,
      status: 'ok',
      httpStatus: 200,
      ...usage,
      attempts: 1,
      firstEventMs: turn.firstMs,
      totalMs: durationMs,
    },
    attempts: [{ ...attempt, outcome: 'ok', upstreamStatus: 200 }],
    hourModel: model,
    limitDeltas: [],
    isServiceFault: false,
    affinity: [],
  })
}
