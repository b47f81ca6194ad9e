/** The body of a request as a model source gets it: the client's own bytes with the key's policy, in the same dialect. */
import { AppError } from '../../errors.ts'
import { getObject, getObjects, getText, type JsonObject } from '../../lib/json.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'
import { endsInTrigger } from '../formats/compaction-trigger.ts'
import { isReference } from '../formats/input-items.ts'
import { enforcedMembers, toUpstreamEffort, toUpstreamTier } from '../ingress/key-policy.ts'
import { alwaysStreamed, cutMembers, spliceBody } from '../ingress/splice.ts'
import { getFileIds, getMarks } from '../turn/continuity.ts'
import type { TurnBody } from '../turn/turn.ts'

/** A body and the names of what was left out of it, for `x-sluice-dropped-fields`. */
export interface SourceBody {
  body: TurnBody
  dropped: readonly string[]
}

/** Sets the members, and cuts out those that are undefined. All other bytes stay. */
export const withMembers = (body: TurnBody, members: JsonObject): TurnBody => {
  const cut = Object.keys(members).filter((name) => members[name] === undefined && name in body.json)
  const set = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
  const json = { ...body.json }
  for (const name of cut) delete json[name]
  const shorter = cut.length === 0 ? body : { ...body, bytes: cutMembers(body.bytes, cut), json }
  return spliceBody(shorter, set)
}

/** The usage of a stream comes only when it is requested. Nothing is stored at the source, where no key could find it. */
export const chatBody = (body: TurnBody, key: KeyPolicy | null): SourceBody => {
  const { stream, stream_options: options, store } = body.json
  const members = {
    ...(key?.enforcedModel && { model: key.enforcedModel }),
    ...(key?.efforts.enforced && { reasoning_effort: toUpstreamEffort(key.efforts.enforced) }),
    ...(key && key.tier !== null && { service_tier: toUpstreamTier(key.tier) }),
    ...(stream === true && { stream_options: { ...getObject(options), include_usage: true } }),
    ...(store === true && { store: undefined }),
  }
  return { body: withMembers(body, members), dropped: store === true ? ['store'] : [] }
}

/** `isNative`: the key's policy fills in what is missing and rejects the rest, as for accounts. */
export const responsesBody = (
  body: TurnBody,
  { key, isNative }: { key: KeyPolicy | null; isNative: boolean },
): SourceBody => {
  const { json } = body
  const enforced = isNative || !key ? enforcedMembers(json, key) : publicPolicy(json, key)
  return {
    body: withMembers(body, {
      ...enforced,
      ...(isNative && alwaysStreamed(json)),
      ...(json.store !== false && { store: false }),
    }),
    dropped: json.store === true ? ['store'] : [],
  }
}

const publicPolicy = (json: JsonObject, { enforcedModel, efforts, tier }: KeyPolicy): JsonObject => ({
  ...(enforcedModel !== null && { model: enforcedModel }),
  ...(efforts.enforced !== null && {
    reasoning: { ...getObject(json.reasoning), effort: toUpstreamEffort(efforts.enforced) },
  }),
  ...(tier !== null && { service_tier: toUpstreamTier(tier) }),
})

/** Why a source cannot serve this Responses request; null: it can. Sources keep no state and read no one's ciphertext. */
export const unsupportedBySourceError = (json: JsonObject): AppError | null => {
  const { input, previous_response_id: previous } = json
  if (previous !== undefined && previous !== null)
    return new AppError('previous_response_not_found', {
      message: 'Model sources keep no responses. Send the full conversation.',
      param: 'previous_response_id',
    })
  if (getObjects(input).some(isReference))
    return new AppError('previous_response_not_found', {
      message: 'Model sources keep no items. Send the item itself.',
      param: 'input',
    })
  if (json.background === true)
    return new AppError('unsupported_parameter', {
      message: 'background is not supported, because nothing is stored between requests.',
      param: 'background',
    })
  const cannot = CANNOT.find(({ isIn }) => isIn(input))
  return cannot ? new AppError('invalid_request_error', { message: cannot.message, param: 'input' }) : null
}

const CANNOT: readonly { isIn: (input: unknown) => boolean; message: string }[] = [
  {
    isIn: endsInTrigger,
    message: 'The model of this request is served by a model source, which cannot compact conversations.',
  },
  {
    isIn: (input) => getFileIds(input).length > 0,
    message: 'The model of this request is served by a model source, which cannot read uploaded files.',
  },
  {
    isIn: (input) => getMarks(input).hasCiphertext,
    message:
      'This conversation contains reasoning that only ChatGPT can read, and its model is served by a model source. Start a new conversation.',
  },
]

/** What admission reads of a chat request, under the names of the Responses dialect. */
export const admittedChat = ({
  model,
  reasoning_effort: effort,
  service_tier,
  prompt_cache_key,
}: JsonObject): JsonObject => ({
  model,
  ...(getText(effort) && { reasoning: { effort } }),
  service_tier,
  prompt_cache_key,
})
