/**
 * Images: the native client's own requests leave byte for byte; those of OpenAI SDKs are checked and sent as JSON.
 * Assumed: ChatGPT has its own image routes under `/codex/images`, which some accounts lack and free plans may not use.
 */
import type { Ctx } from '../../bindings.ts'
import { AppError } from '../../errors.ts'
import { collectAfter } from '../../lib/collect-after.ts'
import { type JsonObject, objectOf, textOf } from '../../lib/json.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'
import { DEFAULT_IMAGE_MODEL } from '../../model/image-models.ts'
import { type ImageAction, imageFormToJson, toImageRequest } from '../formats/image-request.ts'
import { parseObject } from '../raw-body.ts'
import { demandSingle } from '../single-members.ts'
import type { TurnBody } from '../turn.ts'
import { admitRelay, preparedFor, type RelayRequest, readBodyFor, relay, relayRoute } from './relay.ts'

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
    endOf,
  },
})

/** Assumed: the events are those of the public Images API. */
const endOf = (type: string): 'ok' | 'error' | null =>
  type === 'image_generation.completed' || type === 'image_edit.completed' ? 'ok' : type === 'error' ? 'error' : null

const MAX_MODEL_CHARS = 200

const native = (action: ImageAction) =>
  relayRoute(async (c) => {
    const unread = requestFor(c, action, {
      isNative: true,
      accept: c.req.header('accept') ?? 'application/json',
      model: null,
    })
    const raw = await readBodyFor(c, unread, MAX_BODY_BYTES)
    const model = preparedFor(c, raw, unread, () => {
      const json = parseObject(raw.bytes)
      demandSingle(raw.bytes, json)
      collectAfter(raw.bytes.length)
      return textOf(json.model).slice(0, MAX_MODEL_CHARS) || DEFAULT_IMAGE_MODEL
    })
    return relay(admitRelay(c, { ...unread, model }, raw))
  })

const forSdk = (action: ImageAction) =>
  relayRoute(async (c) => {
    const unread = requestFor(c, action, { isNative: false, accept: 'application/json', model: null })
    const raw = await readBodyFor(c, unread, MAX_BODY_BYTES)
    const json = await jsonOf(c, action, raw).catch((err: unknown) =>
      preparedFor(c, raw, unread, () => {
        throw err
      }),
    )
    const body = preparedFor(c, raw, unread, () => {
      const { body: checked, dropped } = toImageRequest(action, json)
      c.set('droppedFields', dropped)
      const sent = written(raw, checked)
      collectAfter(sent.bytes.length)
      return sent
    })
    const { model, stream } = objectOf(body.json)
    const accept = stream === true ? 'text/event-stream' : 'application/json'
    return relay(admitRelay(c, { ...unread, accept, model: textOf(model) }, body))
  })

const written = ({ hold }: TurnBody, json: JsonObject): TurnBody => {
  const bytes = encodeUtf8(JSON.stringify(json))
  hold.resize(bytes.length)
  return { bytes, json, hold }
}

const jsonOf = async (c: Ctx, action: ImageAction, { bytes }: TurnBody) => {
  const contentType = c.req.header('content-type') ?? ''
  if (action === 'generations' || !contentType.toLowerCase().startsWith('multipart/form-data')) {
    const json = parseObject(bytes)
    demandSingle(bytes, json)
    return json
  }
  const form = await new Response(bytes, { headers: { 'content-type': contentType } })
    .formData()
    .catch((cause: unknown) => {
      throw new AppError('invalid_request_error', {
        message: 'The request body is not valid multipart/form-data.',
        cause,
      })
    })
  return imageFormToJson(form)
}

export const nativeGeneration = native('generations')
export const nativeEdit = native('edits')
export const publicGeneration = forSdk('generations')
export const publicEdit = forSdk('edits')

/** ChatGPT has no such route. */
export const variations = relayRoute(async () => {
  throw new AppError('not_found', { message: 'Image variations are not available. Use /v1/images/edits.' })
})
