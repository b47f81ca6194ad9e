/** The load driver for sockets, a child process like `driver.ts`: one job in argv, its result on stdout. */
import type { Target } from './driver.ts'
import { frameBytes, OPCODE } from './frames.ts'
import { machineNs } from './machine-clock.ts'
import {
  type BodyName,
  createFrame,
  handshakeHeaders,
  RESPONSES_PATH,
  STAMP_DIGITS,
  STAMP_KEY,
  sessionId,
} from './payload.ts'
import { RawSocket } from './raw-socket.ts'
import { percentile } from './stats.ts'

export type SocketJob =
  | { kind: 'events'; target: Target; sockets: number; warmupMs: number; durationMs: number }
  | { kind: 'turns'; targets: Target[]; body: BodyName; warmup: number; turns: number }
  | { kind: 'idle'; target: Target; count: number; holdMs: number }
  /** `abandons`: the client stops reading in the middle and closes the connection after `abandonMs`. */
  | { kind: 'cycles'; target: Target; count: number; concurrency: number; abandonMs: number | null }

export type Latency = { p50Us: number; p99Us: number; samples: number }
export type TurnsResult = Record<string, Latency>
export type IdleResult = { opened: number; rampSeconds: number }
export type CyclesResult = { cycles: number; seconds: number }

/** Number of parallel handshakes. */
const RAMP = 20

const job = JSON.parse(process.argv[2] ?? 'null') as SocketJob // written by bench/sockets.ts, which shares the type
console.log(JSON.stringify(await run(job)))
process.exit(0)

function run(task: SocketJob): Promise<unknown> {
  if (task.kind === 'events') return events(task)
  if (task.kind === 'turns') return turns(task)
  return task.kind === 'idle' ? idle(task) : cycles(task)
}

/** From the upstream's write of an event to its arrival here, over all sockets. */
async function events(task: Extract<SocketJob, { kind: 'events' }>): Promise<Latency> {
  const samplesUs: number[] = []
  let isMeasuring = false
  const onText = (payload: Buffer) => {
    const at = payload.indexOf(STAMP_KEY)
    if (!isMeasuring || at === -1) return
    const from = at + STAMP_KEY.length
    const sent = BigInt(payload.toString('latin1', from, from + STAMP_DIGITS))
    samplesUs.push(Number(machineNs() - sent) / 1000)
  }
  const sockets = await Promise.all(Array.from({ length: task.sockets }, (_, n) => connect(task.target, n)))
  for (const [n, socket] of sockets.entries()) {
    socket.onText = onText
    socket.send(createBytes('2kb', n))
    await Bun.sleep(3) // spread over the interval
  }
  await Bun.sleep(task.warmupMs)
  isMeasuring = true
  await Bun.sleep(task.durationMs)
  isMeasuring = false
  for (const socket of sockets) socket.drop()
  return latency(samplesUs)
}

/** From the create frame to its terminal event on a socket that has served before. Alternates between the targets. */
async function turns(task: Extract<SocketJob, { kind: 'turns' }>): Promise<TurnsResult> {
  const clients = await Promise.all(
    task.targets.map(async (target, n) => ({
      name: target.name,
      socket: await connect(target, n),
      frame: createBytes(task.body, n),
      samplesUs: [] as number[],
    })),
  )
  for (let n = 0; n < task.warmup + task.turns; n++) {
    for (const { socket, frame, samplesUs } of clients) {
      const sentNs = Bun.nanoseconds()
      await turn(socket, frame)
      if (n >= task.warmup) samplesUs.push((Bun.nanoseconds() - sentNs) / 1000)
    }
  }
  for (const { socket } of clients) socket.drop()
  return Object.fromEntries(clients.map(({ name, samplesUs }) => [name, latency(samplesUs)]))
}

async function idle(task: Extract<SocketJob, { kind: 'idle' }>): Promise<IdleResult> {
  const started = performance.now()
  const sockets: RawSocket[] = []
  let next = 0
  const opener = async () => {
    for (let n = next++; n < task.count; n = next++) {
      const socket = await connect(task.target, n)
      await turn(socket, createBytes('2kb', n))
      sockets.push(socket)
    }
  }
  await Promise.all(Array.from({ length: RAMP }, opener))
  const rampSeconds = (performance.now() - started) / 1000
  let left = 0
  for (const socket of sockets) void socket.closed.then(() => left++)
  await Bun.sleep(task.holdMs)
  const result = { opened: sockets.length - left, rampSeconds }
  for (const socket of sockets) socket.drop()
  return result
}

async function cycles(task: Extract<SocketJob, { kind: 'cycles' }>): Promise<CyclesResult> {
  const started = performance.now()
  let left = task.count
  const worker = async (n: number) => {
    while (left-- > 0) {
      const socket = await connect(task.target, n)
      if (task.abandonMs === null) {
        await turn(socket, createBytes('2kb', n))
        await socket.close()
      } else await abandon(socket, { frame: createBytes('2kb', n), ms: task.abandonMs })
    }
  }
  await Promise.all(Array.from({ length: task.concurrency }, (_, n) => worker(n)))
  return { cycles: task.count, seconds: (performance.now() - started) / 1000 }
}

async function abandon(socket: RawSocket, { frame, ms }: { frame: Uint8Array; ms: number }): Promise<void> {
  const first = Promise.withResolvers<void>()
  socket.onText = () => {
    socket.pause()
    first.resolve()
  }
  socket.send(frame)
  await first.promise
  await Bun.sleep(ms)
  socket.drop()
}

/** Rejects when the response is not the expected one, or the connection ends before. */
function turn(socket: RawSocket, frame: Uint8Array): Promise<void> {
  const over = Promise.withResolvers<void>()
  socket.onText = (payload) => {
    const start = payload.toString('latin1', 0, 40)
    if (start.startsWith('{"type":"response.completed"')) over.resolve()
    else if (!start.startsWith('{"type":"response.')) over.reject(new Error(payload.toString().slice(0, 600)))
  }
  void socket.closed.then(() => over.reject(new Error('the connection ended in the middle of a turn')))
  socket.send(frame)
  return over.promise
}

function connect(target: Target, n: number): Promise<RawSocket> {
  return RawSocket.open(target.url, RESPONSES_PATH, handshakeHeaders(sessionId(n), target.apiKey))
}

function createBytes(body: BodyName, n: number): Uint8Array {
  return frameBytes(OPCODE.text, Buffer.from(createFrame(body, sessionId(n))), true)
}

function latency(samplesUs: number[]): Latency {
  samplesUs.sort((a, b) => a - b)
  if ((samplesUs[0] ?? 0) < 0) throw new Error('something arrived before it was sent: the clocks are not the same')
  return { p50Us: percentile(samplesUs, 0.5), p99Us: percentile(samplesUs, 0.99), samples: samplesUs.length }
}
