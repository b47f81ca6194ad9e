/**
 * Images: the native client's own requests leave byte for byte; those of OpenAI SDKs are checked and sent as JSON.
 * Assumed: ChatGPT has its own image routes under `/codex/images`, which some accounts lack and free plans may not use.
 */
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { getText } from '../../lib/json.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'
import { DEFAULT_IMAGE_MODEL } from '../../model/catalog/image-models.ts'
import { type ImageAction, imageFormToJson, toImageRequest } from '../formats/image-request.ts'
import { readForm } from '../formats/multipart-form.ts'
import { collectAfter, parseObject, requireSingle } from '../ingress/raw-body.ts'
import type { TurnBody } from '../turn/turn.ts'
import { admitRelay, builtFor, preparedFor, type RelayRequest, readBodyFor, relay, turnRoute } from './relay.ts'

/** A 64 MiB edit, encoded and with its prompt. */
const MAX_BODY_BYTES = 96 * 1024 * 1024

const requestFor = (
  c: Ctx,
  action: ImageAction,
  more: Pick<RelayRequest, 'isNative' | 'accept' | 'model'>,
): RelayRequest => ({
  ...more,
  kind: 'image',
  surface: 'image',
  path: `/codex/images/${action}`,
  headers: 'client',
  plan: {
    method: 'POST',
    contentType: 'application/json',
    timeoutMs: c.env.settings.current().imageTimeoutSeconds * 1000,
    retry: 'before-sent',
    isRoutePerAccount: true,
    readsUsage: true,
    getEnd,
  },
})

/** Assumed: the events are those of the public Images API. */
const getEnd = (type: string): 'ok' | 'error' | null =>
  type === 'image_generation.completed' || type === 'image_edit.completed' ? 'ok' : type === 'error' ? 'error' : null

const MAX_MODEL_CHARS = 200

const native = (action: ImageAction) =>
  turnRoute(async (c) => {
    const unread = requestFor(c, action, {
      isNative: true,
      accept: c.req.header('accept') ?? 'application/json',
      model: null,
    })
    const raw = await readBodyFor(c, unread, MAX_BODY_BYTES)
    const model = preparedFor(c, raw, unread, () => {
      const json = parseObject(raw.bytes)
      requireSingle(raw.bytes, json)
      collectAfter(raw.bytes.length)
      return getText(json.model).slice(0, MAX_MODEL_CHARS) || DEFAULT_IMAGE_MODEL
    })
    return relay(await admitRelay(c, { ...unread, model }, raw))
  })

const forSdk = (action: ImageAction) =>
  turnRoute(async (c) => {
    const unread = requestFor(c, action, { isNative: false, accept: 'application/json', model: null })
    const raw = await readBodyFor(c, unread, MAX_BODY_BYTES)
    const { bytes, model, isStream } = await builtFor(c, raw, unread, () => written(c, action, raw))
    const accept = isStream ? 'text/event-stream' : 'application/json'
    return relay(await admitRelay(c, { ...unread, accept, model }, { bytes, json: {}, hold: raw.hold }))
  })

/** The request as it is sent. Only its bytes are kept: parsed, the images would be in memory twice. */
const written = async (c: Ctx, action: ImageAction, raw: TurnBody) => {
  const { body, dropped } = toImageRequest(action, await jsonOf(c, action, raw))
  c.set('droppedFields', dropped)
  const bytes = encodeUtf8(JSON.stringify(body))
  raw.hold.resize(bytes.length)
  collectAfter(bytes.length)
  return { bytes, model: body.model, isStream: body.stream === true }
}

/**
 * While a form is written as JSON, the body, its parsed files, and the images as base64 (4/3 of their size) in a string, in
 * the JSON and in its bytes are in memory.
 */
const FORM_COPIES = 6
/** 16 images, a mask, and the parameters. */
const MAX_FORM_FIELDS = 64

const jsonOf = async (c: Ctx, action: ImageAction, { bytes, hold }: TurnBody) => {
  const contentType = c.req.header('content-type') ?? ''
  if (action === 'generations' || !contentType.toLowerCase().startsWith('multipart/form-data')) {
    const json = parseObject(bytes)
    requireSingle(bytes, json)
    return json
  }
  c.env.bodies.grow(hold, FORM_COPIES * bytes.length)
  return imageFormToJson(await readForm(bytes, contentType, { param: 'image', maxFields: MAX_FORM_FIELDS }))
}

export const nativeGeneration = native('generations')
export const nativeEdit = native('edits')
export const publicGeneration = forSdk('generations')
export const publicEdit = forSdk('edits')

/** ChatGPT has no such route. */
export const variations = turnRoute(async () => {
  throw new AppError('not_found', { message: 'Image variations are not available. Use /v1/images/edits.' })
})
