/** Answers an admitted turn, streamed or as one document, with its headers and phases, and settles it once. */
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import type { JsonObject } from '../../lib/json.ts'
import { withoutFacts } from '../formats/account-facts.ts'
import { ResponseCollector } from '../formats/collect.ts'
import { parsed } from '../formats/public-events.ts'
import { begin, type Served } from '../turn/begin.ts'
import type { Flow } from '../turn/flow.ts'
import type { Turn } from '../turn/turn.ts'
import { type Contract, NativeContract } from './contracts.ts'
import { eventStream } from './event-stream.ts'

/** Reverse proxies time out waiting for headers and the native client does not, so headers are sent early after this. */
const EARLY_HEADERS_MS = 10_000

/**
 * The longest idle timeout the runtime accepts, for clients that stop reading; any write resets it, keepalives too (Bun
 * 1.4.5). Set when the stream begins: setting it at the end would keep the request in memory, 3 KiB a stream (Bun
 * 1.4.5).
 */
export const STALLED_SECONDS = 255

export interface Answered extends Served {
  c: Ctx
}

/** Answers with server-sent events. Throws the `AppError` of a turn that failed before any byte was sent. */
export const answerWithStream = async (served: Answered, contract: Contract): Promise<Response> => {
  const { c, turnAbort } = served
  const { clock, pulse, server } = c.env
  const sent = { headers: false }
  const { whenWritten: answer } = contract
  const opening = begin(answer ? { ...served, answer } : served, sent)
  const flow = await withServerTiming(served, inTime(opening, clock, contract.earlyHeadersMs)).catch((err: unknown) => {
    if (contract instanceof NativeContract && err instanceof AppError && err.extra.inStream) return null
    throw err
  })
  const headers = streamHeaders(served, flow)
  sent.headers = true
  const body = eventStream(flow ?? opening, { clock, pulse, contract, turnAbort })
  server?.timeout(c.req.raw, STALLED_SECONDS)
  try {
    return new Response(body, { headers })
  } catch (err) {
    sent.headers = false
    turnAbort.abort(AppError.from(err)) // an internal error must not keep the account's slot
    await body.cancel()
    throw err
  }
}

/** Answers with one JSON document, written from the finished response. No header is sent before it. */
export const answerWithJson = (served: Answered, toText: (response: JsonObject) => string): Promise<Response> => {
  const answer: Promise<Response> = getDocument({ ...served, answer: () => answer }, toText)
  return answer
}

const getDocument = async (served: Answered, toText: (response: JsonObject) => string): Promise<Response> => {
  const flow = await withServerTiming(served, begin(served, { headers: false }))
  const response = await collected(flow)
  if (flow.end?.error) throw flow.end.error
  const text = toText(withoutFacts(response()))
  const headers = { ...answerHeaders(served, flow), 'content-type': 'application/json;charset=utf-8' }
  return new Response(text, { headers })
}

/** Adds `Server-Timing` to failed answers as well. */
export const withServerTiming = <T>({ c, turn }: Answered, opening: Promise<T>): Promise<T> =>
  opening.catch((err: unknown) => {
    c.header('server-timing', serverTiming(turn))
    if (turn.log.source) c.header(SOURCE_HEADER, encoded(turn.log.source.name))
    throw err
  })

/** Reads to the end. The returned function gives the collected response, or throws the error its events reported. */
const collected = async (flow: Flow): Promise<() => JsonObject> => {
  const collector = new ResponseCollector()
  try {
    for (let events = await flow.next(); events !== null; events = await flow.next())
      for (const { type, bytes } of events)
        if (type !== null && collector.needs(type)) collector.push(parsed(bytes, type))
  } catch (err) {
    flow.fail(AppError.from(err)) // an internal error must not keep the account's slot
    throw err
  }
  return () => collector.result()
}

/** The flow, or null when it takes longer than `ms`. Rejects if opening fails before that. */
const inTime = (opening: Promise<Flow>, clock: Clock, ms = EARLY_HEADERS_MS): Promise<Flow | null> =>
  new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve(null))
    opening.then(resolve, reject).finally(cancel)
  })

const streamHeaders = (served: Answered, flow: Flow | null): Record<string, string> => {
  const headers = answerHeaders(served, flow)
  headers['content-type'] = 'text/event-stream; charset=utf-8'
  headers['cache-control'] = 'no-cache, no-transform'
  headers['x-accel-buffering'] = 'no'
  return headers
}

export const answerHeaders = (
  { c, turn }: Answered,
  flow: (Pick<Flow, 'headers'> & Partial<Pick<Flow, 'accountId'>>) | null,
): Record<string, string> => {
  const limits = c.env.clientLimits.headersFor(c.get('client').key, flow?.accountId ?? null)
  const headers: Record<string, string> = { ...flow?.headers, ...limits, 'server-timing': serverTiming(turn) }
  const dropped = c.get('droppedFields')
  if (dropped && dropped.length > 0) headers['x-sluice-dropped-fields'] = droppedFields(dropped)
  if (turn.log.source) headers[SOURCE_HEADER] = encoded(turn.log.source.name)
  return headers
}

/** Names the model source that served the request. */
const SOURCE_HEADER = 'x-sluice-source'

const MAX_DROPPED_FIELDS = 32
const MAX_FIELD_CHARS = 64
/** Everything except visible ASCII, and the characters that separate or escape the list. */
const UNSAFE = /[^!-$&-+\--~]/gu

/** As visible ASCII. */
const encoded = (text: string): string => text.toWellFormed().replace(UNSAFE, encodeURIComponent)

/** Client-chosen member names: percent-encoded for a header, shortened when long. */
const droppedFields = (names: readonly string[]): string => {
  const named = names.slice(0, MAX_DROPPED_FIELDS).map((name) => {
    const text = encoded(name.slice(0, MAX_FIELD_CHARS + 1))
    return text.length > MAX_FIELD_CHARS ? `${text.slice(0, MAX_FIELD_CHARS).replace(/%.?$/, '')}...` : text
  })
  return [...named, ...(names.length > MAX_DROPPED_FIELDS ? ['...'] : [])].join(', ')
}

/** The phases completed when the headers are sent, in ms with three decimals (W3C Server-Timing). */
const serverTiming = ({ log }: Turn): string => {
  let text = ''
  let before = 0
  const phase = (name: string, at: number | null) => {
    if (at === null) return
    text += `${text === '' ? '' : ', '}${name};dur=${Math.max(0, at - before).toFixed(3)}`
    before = at
  }
  phase('admit', log.admitMs)
  phase('select', log.selectMs)
  phase('connect', log.connectMs)
  phase('first', log.firstEventMs)
  return text
}
