/**
 * Transcription for the native client and for OpenAI SDKs. Assumed: ChatGPT's route takes a form of `file` and `prompt` alone, with
 * the smallest set of headers, answers `{text}`, and tells the length of the audio in `duration` or `usage.seconds`, if at all.
 */
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { getObject, parseJson } from '../../lib/json.ts'
import { frame } from '../../lib/sse-payload.ts'
import { decodeUtf8 } from '../../lib/utf8.ts'
import { TRANSCRIPTION_MODEL } from '../../model/catalog/audio-models.ts'
import { choicesFor } from '../../model/sources/sources.ts'
import { type Answered, answerHeaders } from '../downstream/answer.ts'
import { toSeconds } from '../formats/audio-length.ts'
import { readForm } from '../formats/multipart-form.ts'
import {
  MAX_AUDIO_BYTES,
  MAX_AUDIO_FIELDS,
  type Transcription,
  toTranscription,
} from '../formats/transcription-form.ts'
import { collectAfter } from '../ingress/raw-body.ts'
import type { TurnBody } from '../turn/turn.ts'
import { admitRelay, builtFor, openRelay, type RelayRequest, readBodyFor, turnRoute } from './relay.ts'

const TIMEOUT_MS = 120_000
/** The file, its prompt and other fields. */
const MAX_BODY_BYTES = MAX_AUDIO_BYTES + 512 * 1024
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

const requestFor = (isNative: boolean, contentType: string | null): RelayRequest => ({
  kind: 'audio',
  surface: 'audio',
  isNative,
  path: '/transcribe',
  accept: 'application/json',
  model: TRANSCRIPTION_MODEL,
  headers: 'smallest',
  plan: { method: 'POST', contentType, timeoutMs: TIMEOUT_MS, retry: 'idempotent', isBlockedByPages: true },
})

const transcribe = (isNative: boolean) =>
  turnRoute(async (c) => {
    const unread = requestFor(isNative, null)
    const raw = await readBodyFor(c, unread, MAX_BODY_BYTES).catch(aboutFile)
    const bySource = isNative ? null : await sourceRequest(c, raw, unread)
    if (bySource) return (await import('../sources/serve.ts')).serveAudio(c, bySource, bySource.choices)
    const { served, format } = await admitTranscription(c, raw, isNative)
    const answer: Promise<Response> = answered({ ...served, answer: () => answer }, isNative ? null : format)
    return answer
  })

/** A separate function, so that the closure that builds the answer does not keep the form. */
const admitTranscription = async (c: Ctx, raw: TurnBody, isNative: boolean) => {
  const unread = requestFor(isNative, null)
  const form = await builtFor(c, raw, unread, () => written(c, raw, isNative))
  c.set('droppedFields', form.dropped)
  const body: TurnBody = { bytes: form.bytes, json: {}, hold: raw.hold }
  return { served: await admitRelay(c, requestFor(isNative, form.contentType), body), format: form.format }
}

/** A form whose model a source lists: it is sent as it is, whatever other fields it has. Null: the pool serves it. */
const sourceRequest = async (c: Ctx, raw: TurnBody, unread: RelayRequest) => {
  if (!c.env.sources.enabled.some(({ supports }) => supports.audio)) return null
  const contentType = c.req.header('content-type') ?? ''
  const form = await builtFor(c, raw, unread, () => {
    c.env.bodies.grow(raw.hold, 2 * raw.bytes.length)
    return readForm(raw.bytes, contentType, { param: 'file', maxFields: MAX_AUDIO_FIELDS })
  })
  raw.hold.resize(raw.bytes.length)
  const isStreamed = form.get('stream') === 'true'
  const { key } = c.get('client')
  const choices = choicesFor(c.env, { model: form.get('model'), key, capability: 'audio', isStreamed })
  return choices.length > 0 ? { body: raw, contentType, isStreamed, choices } : null
}

/** A body that ends early is a file that ends early. */
const aboutFile = (err: unknown): never => {
  const isCut = err instanceof AppError && err.code === 'invalid_request_error' && err.extra.param === undefined
  throw isCut ? new AppError(err.code, { ...err.extra, message: err.message, param: 'file' }) : err
}

/** The form as it is sent. While it is built, the body, the file and the new form are in memory. */
const written = async (c: Ctx, { bytes: received, hold }: TurnBody, isNative: boolean) => {
  c.env.bodies.grow(hold, 3 * received.length)
  const form = await readForm(received, c.req.header('content-type') ?? '', {
    param: 'file',
    maxFields: MAX_AUDIO_FIELDS,
  })
  const { file, prompt, format, dropped } = toTranscription(form, isNative)
  const sent = new FormData()
  sent.append('file', file, file.name || 'audio')
  if (prompt !== null) sent.append('prompt', prompt)
  const encoded = new Response(sent)
  const contentType = encoded.headers.get('content-type')
  const bytes = new Uint8Array(await encoded.arrayBuffer())
  hold.resize(bytes.length)
  collectAfter(bytes.length)
  return { bytes, contentType, format, dropped }
}

/** `format` is null for the native client, which gets the answer as it came. */
const answered = async (served: Answered, format: Transcription['format'] | null): Promise<Response> => {
  const flow = await openRelay(served)
  const bytes = await flow.bytes(MAX_ANSWER_BYTES)
  const json = getObject(parseJson(decodeUtf8(bytes)))
  flow.meter.audioSeconds = toSeconds(json)
  const headers = answerHeaders(served, flow)
  if (format === null) return new Response(new Uint8Array(bytes), { status: flow.status, headers })
  const { text } = json
  if (typeof text !== 'string')
    throw new AppError('upstream_error', { message: 'ChatGPT sent an answer without a transcript.' })
  return publicAnswer(text, format, {
    ...headers,
    'x-sluice-model': TRANSCRIPTION_MODEL,
  })
}

const publicAnswer = (text: string, format: Transcription['format'], headers: Record<string, string>): Response => {
  const type = (value: string) => ({ headers: { ...headers, 'content-type': value } })
  if (format === 'text') return new Response(text, type('text/plain; charset=utf-8'))
  if (format === 'json') return new Response(JSON.stringify({ text }), type('application/json'))
  const events = [frame({ type: 'transcript.text.delta', delta: text }), frame({ type: 'transcript.text.done', text })]
  return new Response(Buffer.concat(events), type('text/event-stream; charset=utf-8'))
}

export const nativeTranscription = transcribe(true)
export const publicTranscription = transcribe(false)
