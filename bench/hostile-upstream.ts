/**
 * What an upstream that misbehaves costs: memory of compressed errors, time of huge events, and the Codex CLI while sockets are
 * down. Started by hand, `bun bench/hostile-upstream.ts [bomb] [event] [codex]`; each figure is printed beside its control.
 */
import { createGzip } from 'node:zlib'
import { createUpstream } from '../tests/support/upstream/app.ts'
import { type Fault, faults } from '../tests/support/upstream/faults.ts'
import { answerEvents, RESPONSES_PATH, requestBody, requestHeaders, sessionId } from './payload.ts'
import { cpuMs, rssBytes } from './processes.ts'
import { makeWorkDir, type RunningTarget, removeWorkDir, seedSluice, sluiceCommand, startSluice } from './targets.ts'

const MB = 1_000_000
const REQUESTS = 10
const ROUNDS = 20
const GOOD = answerEvents('resp_bench')

type Answer = () => Response

const good: Answer = () => getStream(GOOD)

const getStream = (pieces: readonly Uint8Array[]): Response => {
  const rest = [...pieces]
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = rest.shift()
      if (piece) controller.enqueue(piece)
      else controller.close()
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

const PLAIN_ERROR = '{"error":{"code":"server_error","message":"It broke."}}'
const plainError: Answer = () => new Response(PLAIN_ERROR, { status: 500 })

/** 1 GB of zeros, about 1 MB of gzip. */
const getBomb = async (): Promise<Answer> => {
  const gzip = createGzip({ level: 9 })
  const zeros = Buffer.alloc(10 * MB)
  const parts: Buffer[] = []
  gzip.on('data', (part: Buffer) => parts.push(part))
  for (let n = 0; n < 100; n++) await new Promise<void>((done) => gzip.write(zeros, () => done()))
  await new Promise<void>((done) => gzip.on('end', done).end())
  const bytes = Buffer.concat(parts)
  console.log(`bomb: ${(bytes.length / MB).toFixed(2)} MB of gzip that unpack to 1 GB`)
  return () => new Response(bytes, { status: 500, headers: { 'content-encoding': 'gzip' } })
}

/** The events of a good answer with one of `bytes` in the middle, in pieces of 64 KiB. */
const getEvent = (bytes: number, end: string): Answer => {
  const lines = ['event: response.output_item.done', '', '']
  const head = 'data: {"type":"response.output_item.done","item":{"text":"'
  lines[1] = `${head}${'x'.repeat(bytes - head.length)}"}}`
  const event = Buffer.from(lines.join(end) + end)
  const pieces: Uint8Array[] = [...GOOD.slice(0, -1)]
  for (let at = 0; at < event.length; at += 65_536) pieces.push(event.subarray(at, at + 65_536))
  return () => getStream([...pieces, ...GOOD.slice(-1)])
}

class Lab {
  answer: Answer = good
  readonly #server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch: async (request) => {
      await request.arrayBuffer()
      return new URL(request.url).pathname === RESPONSES_PATH ? this.answer() : new Response('', { status: 503 })
    },
  })

  get url(): string {
    return this.#server.url.origin
  }

  stop(): Promise<void> {
    return this.#server.stop(true)
  }
}

const ask = async (url: string, apiKey: string): Promise<number> => {
  const id = sessionId(1)
  const began = performance.now()
  const headers = requestHeaders(id, apiKey)
  const response = await fetch(url + RESPONSES_PATH, { method: 'POST', headers, body: requestBody('2kb', id) })
  for await (const _ of response.body ?? []);
  return performance.now() - began
}

/** The highest RSS while `work` runs, less what it was before, in MB. */
const peakOver = async (pid: number, work: () => Promise<void>): Promise<number> => {
  await Bun.sleep(3000)
  const before = rssBytes(pid)
  let peak = before
  const timer = setInterval(() => {
    peak = Math.max(peak, rssBytes(pid))
  }, 5)
  await work()
  clearInterval(timer)
  return (peak - before) / MB
}

const times = async (count: number, work: () => Promise<unknown>): Promise<void> => {
  for (let n = 0; n < count; n++) await work()
}

const bomb = async (lab: Lab, { url, apiKey, child }: RunningTarget): Promise<void> => {
  const compressed = await getBomb()
  const requests = () => times(REQUESTS, () => ask(url, apiKey))
  const measured = async (answer: Answer) => {
    lab.answer = answer
    return peakOver(child.pid, requests)
  }
  await measured(plainError) // a warm-up
  const plain = await measured(plainError)
  const unpacked = await measured(compressed)
  console.log(
    `${REQUESTS} requests answered 500, highest RSS: small JSON +${plain.toFixed(1)} MB, bomb +${unpacked.toFixed(1)} MB`,
  )
}

const event = async (lab: Lab, { url, apiKey, child }: RunningTarget): Promise<void> => {
  for (const [name, end] of [
    ['LF', '\n'],
    ['CRLF', '\r\n'],
  ] as const) {
    const least: Record<'direct' | 'sluice' | 'cpu', number[]> = { direct: [], sluice: [], cpu: [] }
    let peak = 0
    for (const megabytes of [4, 16]) {
      lab.answer = getEvent(megabytes * MB, end)
      const direct: number[] = []
      const sluice: number[] = []
      await times(5, () => ask(url, apiKey))
      await times(ROUNDS, async () => direct.push(await ask(lab.url, apiKey)))
      const began = cpuMs(child.pid)
      peak = await peakOver(child.pid, () => times(ROUNDS, async () => sluice.push(await ask(url, apiKey))))
      least.cpu.push((cpuMs(child.pid) - began) / ROUNDS)
      least.direct.push(Math.min(...direct))
      least.sluice.push(Math.min(...sluice))
    }
    for (const [what, [small = 0, large = 0]] of Object.entries(least))
      console.log(
        `event, ${name}, ${WHAT[what]}: 4 MB ${small.toFixed(0)} ms, 16 MB ${large.toFixed(0)} ms, ratio ${(large / small).toFixed(2)}`,
      )
    console.log(`event, ${name}, through Sluice at 16 MB: highest RSS +${peak.toFixed(1)} MB`)
  }
}

/** Neighbours only make a time longer, so the shortest counts. */
const WHAT: Record<string, string> = {
  direct: 'directly, the shortest',
  sluice: 'through Sluice, the shortest',
  cpu: 'CPU of Sluice per request',
}

const DOWN: [string, Fault][] = [
  ['handshake 500', { ...faults.serverError(), on: 'handshake' }],
  ['handshake 502', { ...faults.badGatewayHtml(), on: 'handshake' }],
  ['handshake 503', { status: 503, body: { detail: 'no' }, on: 'handshake' }],
  ['handshake reset', { reset: true, on: 'handshake' }],
  ['handshake silent', { delayHeadersMs: 60_000, on: 'handshake' }],
  ['socket dies at once', { terminate: { afterEvents: 0 }, on: 'create' }],
  ['closed 1011 at once', { close: { code: 1011, afterEvents: 0 }, on: 'create' }],
  ['closed 1012 mid-answer', { close: { code: 1012, afterEvents: 5 }, on: 'create' }],
]

/** The CLI is ended after 60 s. */
const toldBy = async (client: { exec: (prompt: string) => Promise<Run> }): Promise<string> => {
  const run = await client.exec('hello').catch(() => null)
  if (!run) return 'no answer in 60 s'
  const { seconds, text, complaints } = run
  return `${seconds.toFixed(1)} s, ${text === '' ? 'no answer' : 'answered'}, ${complaints.length} complaints`
}

type Run = { seconds: number; text: string; complaints: string[] }

const codex = async (): Promise<void> => {
  const { installCodex } = await import('../tests/clients/support/codex.ts')
  const { startWorld } = await import('../tests/clients/support/world.ts')
  for (const [name, fault] of [['no fault', {}] as [string, Fault], ...DOWN]) {
    const upstream = createUpstream()
    const account = upstream.addAccount()
    const listening = upstream.listen()
    account.always(fault)
    const baseUrl = `${listening.url}/backend-api/codex`
    const direct = installCodex({ baseUrl, auth: { chatGptLogin: account.authJson() }, sockets: true })
    const alone = await toldBy(direct)
    await direct[Symbol.asyncDispose]()
    await listening.stop()

    await using world = await startWorld({ accounts: [{}] })
    world.upstream.accounts[0]?.always(fault)
    const auth = { key: world.key }
    await using client = installCodex({ baseUrl: `${world.url}/backend-api/codex`, auth, sockets: true })
    console.log(`codex, ${name}: direct ${alone}; through Sluice ${await toldBy(client)}`)
  }
}

const main = async (): Promise<void> => {
  const wanted = process.argv.slice(2)
  const wants = (name: string) => wanted.length === 0 || wanted.includes(name)
  if (wants('bomb') || wants('event')) {
    const command = sluiceCommand('source')
    if (!command) throw new Error('src/main.ts is missing')
    const lab = new Lab()
    const workDir = await makeWorkDir()
    const target = await startSluice(await seedSluice(command, lab.url, workDir))
    try {
      await times(50, () => ask(target.url, target.apiKey))
      if (wants('bomb')) await bomb(lab, target)
      if (wants('event')) await event(lab, target)
    } finally {
      await target.child.stop()
      await lab.stop()
      await removeWorkDir(workDir)
    }
  }
  if (wants('codex')) await codex()
}

await main()
