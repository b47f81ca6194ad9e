/** Reads a complete response of a model source within its limits, checks it, and passes it on to the client unchanged. */
import type { Bindings } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { isObject, type JsonObject, parseJson } from '../../lib/json.ts'
import { decodeUtf8 } from '../../lib/utf8.ts'
import { failureFromThrown } from '../exchange/classify.ts'
import { toSeconds } from '../formats/audio-length.ts'
import type { Metered } from '../turn/meter.ts'
import type { FlowEnd, FlowListener } from '../turn/open-answer.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import { elapsedMs, type Turn } from '../turn/turn.ts'
import { attemptFailed, callSource, errorIn, type SourceRequest } from './call.ts'
import { getTokens, isUsage } from './chat-answer.ts'
import { notJson, noUsage, sourceFailure, sourceTimeoutError } from './source-errors.ts'
import type { SourceSlot } from './source-slot.ts'

/** Embeddings of many long texts are tens of MiB. */
const MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
/** The charge where the key's limits need the usage and the source does not report it. */
const UNKNOWN_OUTPUT_TOKENS = 2048

export interface DocumentRequest {
  seat: SourceSlot
  request: SourceRequest
  /** Transcripts may be plain text. */
  mayBeText?: boolean
  /** What the client gets for the text of the source. An error that it throws ends the turn, which has used tokens. */
  translate?: (text: string) => string
}

/** What came back, as far as the client gets it. */
export interface SourceDocument {
  text: string
  contentType: string
  /** Ends the turn; the error is thrown by the handler. */
  end: FlowEnd
  whenEnded(listener: FlowListener): void
}

/** Rejects with the error for the client, or the turn's abort reason. */
export const openDocument = async (
  env: Pick<Bindings, 'bodies'>,
  proxyDeps: ProxyDeps,
  turn: Turn,
  { seat, request, mayBeText = false, translate = (text) => text }: DocumentRequest,
): Promise<SourceDocument> => {
  const { source } = seat
  const controller = new AbortController()
  const onAbort = () => controller.abort(turn.signal.reason)
  turn.signal.addEventListener('abort', onAbort)
  if (turn.signal.aborted) onAbort()
  const cancelLimit = proxyDeps.clock.after(source.timeoutMs, () => controller.abort(sourceTimeoutError(source)))
  try {
    const { response, blot } = await callSource(proxyDeps, turn, { source, request, signal: controller.signal })
    turn.log.phase = 'stream'
    const body = response.body && blot.stream(response.body)
    const text = decodeUtf8(await getBody(env, turn, { body, seat, signal: controller.signal }))
    turn.log.firstEventMs = elapsedMs(turn.arrivedAt, proxyDeps.clock.monotonic())
    const json = parseJson(text)
    if (isObject(json)) return getDocument(turn, { text, contentType: JSON_TYPE, json, seat, translate })
    const contentType = blot.text(response.headers.get('content-type') ?? JSON_TYPE)
    if (!mayBeText || !isPlainText(contentType)) throw notJson(source, describe(contentType))
    return getDocument(turn, { text, contentType, json: {}, seat, translate })
  } catch (cause) {
    if (turn.signal.aborted) throw turn.signal.reason
    const reason: unknown = controller.signal.reason ?? cause
    controller.abort()
    const failure = failureFromThrown(reason, 'stream')
    throw attemptFailed(turn, reason instanceof AppError ? reason : sourceFailure(source, failure))
  } finally {
    seat.release()
    cancelLimit()
    turn.signal.removeEventListener('abort', onAbort)
  }
}

/** Whatever the source calls it: as a page it could run scripts in a browser. */
const JSON_TYPE = 'application/json'

const describe = (contentType: string): string =>
  contentType.startsWith(JSON_TYPE) ? 'something that is not a JSON object' : `${contentType} in place of JSON`

/** A page is no transcript. */
const isPlainText = (contentType: string): boolean =>
  /^text\/(plain|vtt|srt)|^application\/(x-subrip|srt)/i.test(contentType)

/** Counted in the body budget beside the request, and released with it. */
const getBody = async (
  { bodies }: Pick<Bindings, 'bodies'>,
  { body: request, capture }: Turn,
  { body, seat, signal }: { body: ReadableStream<Uint8Array> | null; seat: SourceSlot; signal: AbortSignal },
): Promise<Uint8Array> => {
  const parts: Uint8Array[] = []
  const requestBytes = request?.bytes.length ?? 0
  let length = 0
  const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = body?.getReader()
  signal.addEventListener('abort', () => void reader?.cancel().catch(() => {})) // ends a pending read
  for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader?.read()) {
    const part = chunk.value
    parts.push(part)
    capture?.bytes(part)
    length += part.length
    if (length > MAX_DOCUMENT_BYTES) throw notJson(seat.source, `more than ${MAX_DOCUMENT_BYTES / 1024 / 1024} MiB`)
    if (request) bodies.grow(request.hold, requestBytes + length)
  }
  signal.throwIfAborted()
  return Buffer.concat(parts)
}

interface Read {
  text: string
  contentType: string
  json: JsonObject
  seat: SourceSlot
  translate: (text: string) => string
}

const getDocument = (turn: Turn, { text, contentType, json, seat, translate }: Read): SourceDocument => {
  const error = errorIn(json)
  if (error) throw new AppError('model_source_error', { message: error.message, upstream: error, body: text })
  const usage = isUsage(json.usage) ? getTokens(json.usage) : null
  const audioSeconds = turn.kind === 'audio' ? toSeconds(json) : null
  const lacksUsage = turn.log.source?.demandsUsage === true && usage === null && audioSeconds === null
  const answer = lacksUsage ? noUsage(seat.source) : translated(text, translate)
  const end: FlowEnd = answer instanceof AppError ? { status: 'error', error: answer } : { status: 'ok', error: null }
  const meter: Metered = {
    responseId: typeof json.id === 'string' ? json.id : null,
    usage,
    audioSeconds,
    ciphertexts: [],
    deltas: lacksUsage ? UNKNOWN_OUTPUT_TOKENS : 0,
  }
  return {
    text: answer instanceof AppError ? '' : answer,
    contentType,
    end,
    whenEnded: (listener) => listener.ended(end, meter),
  }
}

const translated = (text: string, translate: (text: string) => string): string | AppError => {
  try {
    return translate(text)
  } catch (err) {
    return AppError.from(err)
  }
}
