/** The load driver, run as a child process: one job as JSON in argv, its result as one JSON line on stdout. */
import { type Dialect, dialectRequest } from './conversation.ts'
import { type BodyName, RESPONSES_PATH, requestBody, requestHeaders, sessionId } from './payload.ts'
import { Connection, type OnData, type Reply, requestBytes } from './raw-client.ts'
import { percentile } from './stats.ts'

export type Target = { name: string; url: string; apiKey: string }

export type DriverJob =
  | {
      kind: 'throughput'
      target: Target
      body: BodyName
      /** Sends a conversation in this dialect in place of `body`. */
      dialect?: Dialect
      clients: number
      warmupMs: number
      durationMs: number
    }
  | { kind: 'ttfb'; targets: Target[]; body: BodyName; warmup: number; requests: number }
  | { kind: 'streams'; target: Target; count: number; rampMs: number; settleMs: number; durationMs: number }
  | { kind: 'drain'; target: Target; bytesPerSecond: number; durationMs: number }
  | { kind: 'abort'; target: Target; count: number; concurrency: number }

/** `requests` counts those inside the measured time, `total` includes the warm-up. */
export type ThroughputResult = {
  requests: number
  total: number
  seconds: number
  perSecond: number
  failures: number
  firstFailure: string
}
export type TtfbResult = Record<string, { p50Us: number; p99Us: number; samples: number }>
export type StreamsResult = {
  opened: number
  broken: number
  events: number
  maxGapMs: number
  gapsOver200Ms: number
  p99GapMs: number
  driverLagMs: number
}
export type DrainResult = { bytes: number; seconds: number; complete: boolean; failure: string }
export type AbortResult = { aborted: number; failures: number; seconds: number; firstFailure: string }

const job = JSON.parse(process.argv[2] ?? 'null') as DriverJob // written by bench/run.ts, which shares the type
console.log(JSON.stringify(await run(job)))
process.exit(0)

function run(task: DriverJob): Promise<unknown> {
  if (task.kind === 'throughput') return throughput(task)
  if (task.kind === 'ttfb') return timeToFirstByte(task)
  if (task.kind === 'streams') return slowStreams(task)
  if (task.kind === 'drain') return slowReader(task)
  return aborts(task)
}

/** Closed loop: every client sends its next request when the last response has ended. */
async function throughput(task: Extract<DriverJob, { kind: 'throughput' }>): Promise<ThroughputResult> {
  const result: ThroughputResult = { requests: 0, total: 0, seconds: 0, perSecond: 0, failures: 0, firstFailure: '' }
  const start = performance.now() + task.warmupMs
  const end = start + task.durationMs
  const client = async (n: number) => {
    const request = turnBytes(task.target, task.body, n, task.dialect)
    let connection = new Connection(task.target.url)
    while (performance.now() < end) {
      const problem = await connection.send(request).then(whatIsWrong, String)
      const now = performance.now()
      result.total += 1
      if (problem) {
        result.failures += 1
        result.firstFailure ||= problem
        connection.drop()
        connection = new Connection(task.target.url)
      } else if (now >= start && now < end) result.requests += 1
    }
    connection.drop()
  }
  await Promise.all(Array.from({ length: task.clients }, (_, n) => client(n)))
  result.seconds = task.durationMs / 1000
  result.perSecond = result.requests / result.seconds
  return result
}

/** One client; alternates between the targets with each request, so that other load affects all of them equally. */
async function timeToFirstByte(task: Extract<DriverJob, { kind: 'ttfb' }>): Promise<TtfbResult> {
  const clients = task.targets.map((target, n) => ({
    name: target.name,
    connection: new Connection(target.url),
    request: turnBytes(target, task.body, n),
    samplesUs: [] as number[],
  }))
  for (let n = 0; n < task.warmup + task.requests; n++) {
    for (const client of clients) {
      const reply = await client.connection.send(client.request)
      const problem = whatIsWrong(reply)
      if (problem) throw new Error(`${client.name}: ${problem}`)
      if (n >= task.warmup) client.samplesUs.push((reply.firstByteNs - reply.sentNs) / 1000)
    }
  }
  return Object.fromEntries(
    clients.map(({ name, samplesUs }) => {
      samplesUs.sort((a, b) => a - b)
      const summary = {
        p50Us: percentile(samplesUs, 0.5),
        p99Us: percentile(samplesUs, 0.99),
        samples: samplesUs.length,
      }
      return [name, summary]
    }),
  )
}

/** Holds `count` streams open and measures the gaps between reads of each one after the ramp. */
async function slowStreams(task: Extract<DriverJob, { kind: 'streams' }>): Promise<StreamsResult> {
  const result: StreamsResult = {
    opened: 0,
    broken: 0,
    events: 0,
    maxGapMs: 0,
    gapsOver200Ms: 0,
    p99GapMs: 0,
    driverLagMs: 0,
  }
  const gaps: number[] = []
  let isMeasuring = false
  let isClosing = false
  const watch = (): OnData => {
    let last = 0
    return () => {
      const now = performance.now()
      if (last === 0) result.opened += 1
      else if (isMeasuring) gaps.push(now - last)
      last = now
    }
  }
  const connections: Connection[] = []
  for (let n = 0; n < task.count; n++) {
    const connection = new Connection(task.target.url, watch())
    connections.push(connection)
    const broke = () => {
      if (!isClosing) result.broken += 1
    }
    connection.send(turnBytes(task.target, '2kb', n)).then(broke, broke)
    if (n % 10 === 9) await Bun.sleep((task.rampMs / task.count) * 10)
  }
  await Bun.sleep(task.settleMs)
  isMeasuring = true
  const lag = watchOwnLag()
  await Bun.sleep(task.durationMs)
  isMeasuring = false
  isClosing = true
  result.driverLagMs = lag()
  for (const connection of connections) connection.drop()
  gaps.sort((a, b) => a - b)
  result.events = gaps.length
  result.maxGapMs = gaps.at(-1) ?? 0
  result.gapsOver200Ms = gaps.filter((gap) => gap > 200).length
  result.p99GapMs = gaps.length > 0 ? percentile(gaps, 0.99) : 0
  return result
}

/** Reads one long response at `bytesPerSecond` at most, pausing the socket in between. */
async function slowReader(task: Extract<DriverJob, { kind: 'drain' }>): Promise<DrainResult> {
  const started = performance.now()
  const result: DrainResult = { bytes: 0, seconds: 0, complete: false, failure: '' }
  const connection = new Connection(task.target.url, (bytes, self) => {
    result.bytes += bytes.length
    const aheadMs = (result.bytes / task.bytesPerSecond) * 1000 - (performance.now() - started)
    if (aheadMs < 20) return
    self.pause()
    setTimeout(() => self.resume(), aheadMs)
  })
  const whole = connection.send(turnBytes(task.target, '2kb', 0)).then(
    (reply) => {
      result.complete = reply.complete
    },
    (error: unknown) => {
      result.failure = String(error)
    },
  )
  await Promise.race([whole, Bun.sleep(task.durationMs)])
  result.seconds = (performance.now() - started) / 1000
  connection.drop()
  return result
}

/** Opens streams and closes each at its first body bytes, `concurrency` at a time. */
async function aborts(task: Extract<DriverJob, { kind: 'abort' }>): Promise<AbortResult> {
  const started = performance.now()
  const result: AbortResult = { aborted: 0, failures: 0, seconds: 0, firstFailure: '' }
  let left = task.count
  const worker = async (n: number) => {
    const request = turnBytes(task.target, '2kb', n)
    while (left-- > 0) {
      const first = Promise.withResolvers<string>()
      const connection = new Connection(task.target.url, () => first.resolve(''))
      connection.send(request).then(
        (reply) => first.resolve(`ended with status ${reply.status}`),
        (error: unknown) => first.resolve(String(error)),
      )
      const problem = await first.promise
      connection.drop()
      if (problem) result.firstFailure ||= problem
      if (problem) result.failures += 1
      else result.aborted += 1
    }
  }
  await Promise.all(Array.from({ length: task.concurrency }, (_, n) => worker(n)))
  result.seconds = (performance.now() - started) / 1000
  return result
}

function turnBytes(target: Target, body: BodyName, client: number, dialect?: Dialect): Uint8Array {
  const id = sessionId(client)
  if (dialect) {
    const { path, headers, body } = dialectRequest(dialect, id, target.apiKey)
    return requestBytes(target.url + path, headers, body)
  }
  return requestBytes(target.url + RESPONSES_PATH, requestHeaders(id, target.apiKey), requestBody(body, id))
}

/** An error message when a response is not the expected one; otherwise empty. */
function whatIsWrong(reply: Reply): string {
  if (reply.status !== 200) return `status ${reply.status}`
  return reply.complete ? '' : `answer of ${reply.bytes} bytes without its last event`
}

/**
 * Starts measuring how late this process's timers run. The returned function stops and returns the worst delay in ms.
 */
function watchOwnLag(): () => number {
  let last = performance.now()
  let worst = 0
  const timer = setInterval(() => {
    const now = performance.now()
    worst = Math.max(worst, now - last - 10)
    last = now
  }, 10)
  return () => {
    clearInterval(timer)
    return worst
  }
}
