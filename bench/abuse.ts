/**
 * What hostile and slow clients cost the others, on loopback, each beside its control in the same run:
 * `bun bench/abuse.ts [--only floods,frames,pings,readers,bodies,uploads]`. Takes about eight minutes, half of it `uploads`.
 */
import { parseArgs } from 'node:util'
import { frameBytes, OPCODE } from './frames.ts'
import { createFrame, handshakeHeaders, RESPONSES_PATH, requestBody, requestHeaders, sessionId } from './payload.ts'
import { rssBytes } from './processes.ts'
import { createReport, megabytes } from './report.ts'
import { percentile } from './stats.ts'
import {
  makeWorkDir,
  type RunningTarget,
  removeWorkDir,
  seedSluice,
  startSluice,
  startUpstream,
  type Upstream,
} from './targets.ts'

const MB = 1_000_000
const MIB = 1024 * 1024
const BUDGET_BYTES = 512 * MIB
const LARGE_BYTES = 100 * MB

const report = createReport((line) => console.log(line))

/** A connection of a client that does what it wants: what it writes is queued here until the server takes it. */
class Client {
  isOpen = true
  received = 0
  /** The start of what came back. */
  answer = ''
  readonly #ended = Promise.withResolvers<void>()
  readonly #queue: Uint8Array[] = []
  #socket: Bun.Socket<undefined> | null = null
  #flushed = Promise.withResolvers<void>()
  #heard = Promise.withResolvers<void>()

  static async connect(url: string): Promise<Client> {
    const client = new Client()
    const { hostname, port } = new URL(url)
    client.#socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_, bytes) => client.#take(bytes),
        drain: () => client.#flush(),
        close: () => client.#end(),
        error: () => client.#end(),
      },
    })
    return client
  }

  /** A WebSocket after its handshake. */
  static async upgrade(target: RunningTarget, n: number, path = RESPONSES_PATH): Promise<Client> {
    const client = await Client.connect(target.url)
    const headers = {
      ...handshakeHeaders(sessionId(n), target.apiKey),
      host: new URL(target.url).host,
      upgrade: 'websocket',
      connection: 'Upgrade',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'YmVuY2htYXJrYmVuY2htYQ==',
    }
    void client.write(head(`GET ${path}`, headers))
    await client.hears(() => client.answer.includes('\r\n\r\n'))
    if (!client.answer.startsWith('HTTP/1.1 101')) throw new Error(client.answer)
    return client
  }

  get ended(): Promise<void> {
    return this.#ended.promise
  }

  async hears(holds: () => boolean): Promise<void> {
    while (this.isOpen && !holds()) await this.#heard.promise
  }

  /** Resolves when everything was handed to the system, or the connection has ended. */
  write(bytes: Uint8Array): Promise<void> {
    if (this.#queue.length === 0) this.#flushed = Promise.withResolvers()
    this.#queue.push(bytes)
    this.#flush()
    return this.#flushed.promise
  }

  pause(): void {
    this.#socket?.pause()
  }

  resume(): void {
    this.#socket?.resume()
  }

  drop(): void {
    this.#socket?.terminate()
    this.#end()
  }

  #take(bytes: Buffer): void {
    this.received += bytes.length
    if (this.answer.length < 1000) this.answer += bytes.toString('latin1')
    this.#heard.resolve()
    this.#heard = Promise.withResolvers()
  }

  #flush(): void {
    for (let next = this.#queue[0]; next && this.isOpen; next = this.#queue[0]) {
      const written = Math.max(0, this.#socket?.write(next) ?? 0)
      if (written < next.length) {
        this.#queue[0] = next.subarray(written)
        return
      }
      this.#queue.shift()
    }
    this.#flushed.resolve()
  }

  #end(): void {
    this.isOpen = false
    this.#flushed.resolve()
    this.#heard.resolve()
    this.#ended.resolve()
  }
}

const head = (line: string, headers: Record<string, string>): Buffer => {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${line} HTTP/1.1\r\n${lines.join('')}\r\n`)
}

/** Sends a POST up to its body. */
const post = async (target: RunningTarget, n: number, bodyBytes: number): Promise<Client> => {
  const client = await Client.connect(target.url)
  const { 'transfer-encoding': _, ...headers } = requestHeaders(sessionId(n), target.apiKey) as Record<string, string>
  const own = { ...headers, host: new URL(target.url).host, 'content-length': String(bodyBytes) }
  void client.write(head(`POST ${RESPONSES_PATH}`, own))
  return client
}

const repeated = (frame: Uint8Array, bytes: number): Buffer => Buffer.alloc(bytes - (bytes % frame.length), frame)

/** Times of `/health` in ms, one request after the other, for at least `ms` and until `until` has resolved. */
const healthTimes = async (target: RunningTarget, ms: number, until: Promise<unknown> = Promise.resolve()) => {
  const times: number[] = []
  let isOver = false
  void until.then(() => {
    isOver = true
  })
  const startedAt = performance.now()
  const lastAt = startedAt + 60_000
  for (let now = startedAt; (now - startedAt < ms || !isOver) && now < lastAt; ) {
    const response = await fetch(`${target.url}/health`)
    await response.arrayBuffer()
    const after = performance.now()
    times.push(after - now)
    now = after
    await Bun.sleep(1)
    now = performance.now()
  }
  const sorted = times.toSorted((a, b) => a - b)
  return { p99: percentile(sorted, 0.99), max: sorted.at(-1) ?? 0 }
}

/** The highest resident memory from now until `stop`. */
const watchRss = (target: RunningTarget) => {
  let peak = 0
  const look = () => {
    peak = Math.max(peak, rssBytes(target.child.pid))
  }
  const timer = setInterval(look, 20)
  return () => {
    clearInterval(timer)
    look()
    return peak
  }
}

const rssAfter = async (target: RunningTarget, ms: number): Promise<number> => {
  await Bun.sleep(ms)
  return rssBytes(target.child.pid)
}

/** `/health` while one socket sends frames that start no turn; it connects again whenever it is closed. */
const floods = async (target: RunningTarget) => {
  report.heading('/health beside a socket that floods, ms')
  const text = (json: string) => frameBytes(OPCODE.text, Buffer.from(json), true)
  const kinds: Record<string, Uint8Array> = {
    'unknown type': text('{"type":"x"}'),
    'not JSON': text('{"type":'),
    binary: frameBytes(OPCODE.binary, Buffer.alloc(8), true),
    notices: text('{"type":"response.processed"}'),
    pings: frameBytes(OPCODE.ping, Buffer.alloc(4), true),
    pongs: frameBytes(OPCODE.pong, Buffer.alloc(4), true),
  }
  const rows: string[][] = []
  for (const [kind, frame] of Object.entries(kinds))
    for (const bytes of [4 * MB, 16 * MB]) {
      const flood = repeated(frame, bytes)
      const control = await healthTimes(target, 2000)
      const client = await Client.upgrade(target, 1)
      const isOver = Promise.race([client.write(flood).then(() => client.hears(() => false)), Bun.sleep(2000)])
      const beside = await healthTimes(target, 2000, isOver)
      client.drop()
      const row = [control.p99, control.max, beside.p99, beside.max].map((ms) => ms.toFixed(1))
      rows.push([`${bytes / MB} MB, ${kind}`, ...row])
      report.check(`p99 beside ${bytes / MB} MB, ${kind}`, beside.p99 / control.p99, '<=', 5, ' × control')
    }
  report.table(['flood', 'control p99', 'max', 'beside p99', 'max'], rows)
}

/** A header that announces `bytes`, and all of them but the last. */
const unfinishedFrame = (bytes: number): Uint8Array[] => {
  const header = Buffer.alloc(14)
  header[0] = 0x80 | OPCODE.text
  header[1] = 0x80 | 127
  header.writeBigUInt64BE(BigInt(bytes), 2)
  return [header, Buffer.alloc(bytes - 1, 'x')]
}

const frames = async (target: RunningTarget) => {
  report.heading('24 sockets with an unfinished frame of 100 MB each')
  const before = await rssAfter(target, 2000)
  const stop = watchRss(target)
  const [header, rest] = unfinishedFrame(LARGE_BYTES)
  const clients = await Promise.all(Array.from({ length: 24 }, (_, n) => Client.upgrade(target, n)))
  const sent = clients.map(async (client) => {
    await client.write(header!)
    await client.write(rest!)
  })
  await Promise.race([Promise.all(sent), Bun.sleep(20_000)])
  const after = await rssAfter(target, 2000)
  const peak = stop()
  const isOpen = clients.filter((client) => client.isOpen).length
  const later = await rssAfter(target, 30_000)
  for (const client of clients) client.drop()
  const left = await rssAfter(target, 5000)
  const sizes = [before, peak, after, later, left].map(megabytes)
  report.table(['before', 'peak', 'after', '30 s later', 'clients gone', 'still open'], [[...sizes, `${isOpen}`]])
  report.check('RSS after 24 unfinished frames', after / MB, '<=', (BUDGET_BYTES + 100 * MB) / MB, ' MB')
  report.check('RSS 30 s later, above before', (later - before) / MB, '<=', 100, ' MB')
}

const pings = async (target: RunningTarget) => {
  report.heading('60 sockets that send pings and never read')
  const before = await rssAfter(target, 2000)
  const stop = watchRss(target)
  const flood = repeated(frameBytes(OPCODE.ping, Buffer.alloc(125), true), 40 * MB)
  const clients = await Promise.all(Array.from({ length: 60 }, (_, n) => Client.upgrade(target, n)))
  for (const client of clients) client.pause()
  for (const client of clients) void client.write(flood)
  await Bun.sleep(10_000)
  const peak = stop()
  report.table(['before', 'peak'], [[megabytes(before), megabytes(peak)]])
  for (const client of clients) client.drop()
  report.check('60 pinging sockets that never read', (peak - before) / MB, '<=', 60, ' MB')
}

/** Answers of 50 MB to clients that stop reading at once. */
const readers = async (target: RunningTarget, upstream: Upstream) => {
  await upstream.setMode({ kind: 'large', bytes: 50 * MB })
  report.heading('200 clients that do not read an answer of 50 MB')
  const before = await rssAfter(target, 2000)
  const overHttp = async (n: number) => {
    const body = Buffer.from(requestBody('2kb', sessionId(n)))
    const client = await post(target, n, body.length)
    await client.write(body)
    return client
  }
  const overSocket = async (n: number) => {
    const client = await Client.upgrade(target, n, '/v1/responses') // the native route has no sockets on this transport
    await client.write(frameBytes(OPCODE.text, Buffer.from(createFrame('2kb', sessionId(n))), true))
    return client
  }
  for (const [name, open] of Object.entries({ HTTP: overHttp, sockets: overSocket })) {
    const stop = watchRss(target)
    const clients = await Promise.all(Array.from({ length: 200 }, (_, n) => open(n)))
    for (const client of clients) client.pause()
    await Bun.sleep(25_000) // the buffers of the system fill first, some MB for each
    const held = stop()
    for (const client of clients) client.drop()
    const left = await rssAfter(target, 5000)
    report.table(['over', 'before', 'peak', 'clients gone'], [[name, ...[before, held, left].map(megabytes)]])
  }
  await upstream.setMode({ kind: 'burst', groups: 10 })
}

const bodies = async (target: RunningTarget) => {
  report.heading('48 bodies of 100 MB at once')
  const before = await rssAfter(target, 2000)
  const stop = watchRss(target)
  const startedAt = performance.now()
  const text = requestBody('2kb', sessionId(1))
  const body = Buffer.from(text.replace('{', `{"padding":"${'x'.repeat(LARGE_BYTES)}",`))
  let overBudgetMs = 0
  const timer = setInterval(() => {
    if (rssBytes(target.child.pid) > BUDGET_BYTES + before) overBudgetMs += 20
  }, 20)
  const clients = await Promise.all(Array.from({ length: 48 }, (_, n) => post(target, n, body.length)))
  await Promise.race([
    Promise.all(clients.map((client) => client.write(body).then(() => client.hears(() => client.answer !== '')))),
    Bun.sleep(30_000),
  ])
  const seconds = (performance.now() - startedAt) / 1000
  await Bun.sleep(3000)
  clearInterval(timer)
  const peak = stop()
  const statuses = Map.groupBy(clients, ({ answer }) => answer.slice(9, 12) || 'none')
  const told = [...statuses].map(([status, all]) => `${status}: ${all.length}`).join(', ')
  for (const client of clients) client.drop()
  const later = await rssAfter(target, 10_000)
  const sizes = [before, peak, peak - before - BUDGET_BYTES, later].map(megabytes)
  report.table(
    ['before', 'peak', 'over budget', '10 s later', 'for', 'answered after', 'statuses'],
    [[...sizes, `${overBudgetMs / 1000} s`, `${seconds.toFixed(1)} s`, told]],
  )
}

const uploads = async (target: RunningTarget) => {
  report.heading('slow uploads')
  const text = requestBody('2kb', sessionId(1))
  const getBody = (bytes: number) => Buffer.from(text.replace('{', `{"padding":"${'x'.repeat(bytes)}",`))
  const upload = async (name: string, body: Buffer, bytesPerSecond: number, stopAt = body.length) => {
    const startedAt = performance.now()
    const client = await post(target, 1, body.length)
    for (let at = 0; at < stopAt && client.isOpen && client.answer === ''; at += bytesPerSecond / 4) {
      void client.write(body.subarray(at, Math.min(at + bytesPerSecond / 4, stopAt)))
      await Bun.sleep(250)
    }
    await Promise.race([client.hears(() => client.answer !== ''), Bun.sleep(100_000)])
    const seconds = (performance.now() - startedAt) / 1000
    const status = client.answer.slice(9, 12) || 'none'
    client.drop()
    return [name, status, client.isOpen ? '' : 'closed', `${seconds.toFixed(1)} s`]
  }
  const rows = await Promise.all([
    upload('control: 400 KB at once', getBody(400_000), 4_000_000),
    upload('400 KB at 8 KB/s', getBody(400_000), 8_000),
    upload('400 KB at 2 KB/s', getBody(400_000), 2_000),
    upload('20 KB at 400 B/s', getBody(20_000), 400),
    upload('400 KB, silent after 40 KB', getBody(400_000), 40_000, 40_000),
    upload('20 KB, silent after 1 KB', getBody(20_000), 1_000, 1_000),
  ])
  report.table(['upload', 'status', 'connection', 'after'], rows)
  const served = rows.slice(0, 4).filter(([, status]) => status === '200').length
  report.check('slow uploads served, with the control', served, '>=', 4, '')
}

const PARTS = { floods, frames, pings, readers, bodies, uploads }

const { values } = parseArgs({ options: { only: { type: 'string' } } })
const names = values.only?.split(',') ?? Object.keys(PARTS)
const workDir = await makeWorkDir()
const upstream = await startUpstream()
try {
  await upstream.setMode({ kind: 'burst', groups: 10 })
  for (const [name, measure] of Object.entries(PARTS)) {
    if (!names.includes(name)) continue
    const target = await startSluice(
      await seedSluice(['bun', 'src/main.ts'], upstream.url, workDir, { transport: 'auto' }),
    )
    await measure(target, upstream).finally(() => target.child.stop())
  }
} finally {
  await upstream.stop()
  await removeWorkDir(workDir)
}
const failed = report.verdicts.filter(({ isPass }) => !isPass).length
console.log(`${report.verdicts.length - failed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
