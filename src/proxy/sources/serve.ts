/** Requests that a model source serves in place of the pool: admitted, limited, logged and answered like any other turn. */
import type { Ctx } from '../../boot/bindings.ts'
import { getObject, getObjects, getText, type JsonObject, parseJson } from '../../lib/json.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'
import type { Choice } from '../../model/sources/sources.ts'
import { type Answered, answerHeaders, answerWithStream, withServerTiming } from '../downstream/answer.ts'
import { type Contract, contractOptions, NativeContract, publicContract } from '../downstream/contracts.ts'
import { responseFromChat } from '../formats/chat-events.ts'
import { responsesToChat } from '../formats/responses-to-chat.ts'
import { admitTurn, prepared, type TurnKindOf } from '../handlers/turn-route.ts'
import { underFastModeRule } from '../ingress/key-policy.ts'
import { rewriteBody } from '../ingress/rewrite.ts'
import { beginWith } from '../turn/begin.ts'
import type { TurnBody } from '../turn/turn.ts'
import { audioCopy } from './audio-answer.ts'
import type { SourceRequest } from './call.ts'
import { chatCopy } from './chat-answer.ts'
import { toSupportedTools } from './hosted-tools.ts'
import { needsUsage } from './needs-usage.ts'
import { openDocument, type SourceDocument } from './open-document.ts'
import { openStream } from './open-stream.ts'
import {
  admittedChat,
  chatBody,
  responsesBody,
  type SourceBody,
  unsupportedBySourceError,
  withMembers,
} from './source-body.ts'
import { allBusy, reserveSlot, type SourceSlot } from './source-slot.ts'

/** `choices` is not empty. */
export const serveChat = async (
  c: Ctx,
  raw: TurnBody,
  turns: TurnKindOf,
  choices: readonly Choice[],
): Promise<Response> => {
  const key = c.get('client').key
  const { body, dropped } = prepared(c, raw, turns, () => underPolicy(c, raw, (asked, rules) => chatBody(asked, rules)))
  c.set('droppedFields', dropped)
  const { stream, stream_options: options } = raw.json
  const includeUsage = getObject(options).include_usage === true
  const served = await admitted(c, turns, { ...body, json: admittedChat(body.json) })
  const way: Way = { choices, path: '/chat/completions', dialect: 'chat', key }
  return stream === true ? streamed(served, way, chatCopy({ includeUsage })) : document(served, way)
}

/** Null: no source can serve this request, but the pool may. */
export const serveResponses = async (
  c: Ctx,
  raw: TurnBody,
  turns: TurnKindOf,
  choices: readonly Choice[],
): Promise<Response | null> => {
  const { isNative } = turns
  const key = c.get('client').key
  const whyNot = unsupportedBySourceError(raw.json)
  if (whyNot && c.env.pool.offers(choices[0]!.model.model)) return null // there is one
  const { body, dropped } = prepared(c, raw, turns, () => {
    if (whyNot) throw whyNot
    return underPolicy(c, raw, (asked, rules) => responsesBody(asked, { key: rules, isNative }))
  })
  c.set('droppedFields', dropped)
  const served = await admitted(c, turns, body)
  const way: Way = { choices, path: '/responses', dialect: 'responses', key }
  if (!isNative && raw.json.stream !== true) return document(served, way)
  const options = contractOptions(c.env, c.get('client'), served.turn.model)
  return streamed(served, way, isNative ? new NativeContract(options) : publicContract(options))
}

interface Translation<Options> {
  /** The Responses request. */
  body: JsonObject
  dropped: readonly string[]
  options: Options & { stream: boolean }
}

interface Translated<Options> {
  turns: TurnKindOf
  choices: readonly Choice[]
  /** What the source is sent. */
  dialect: 'responses' | 'chat'
  /** What the client calls `service_tier`. */
  tierName: string
  translate: () => Translation<Options>
}

/**
 * A request that was translated to Responses, which a source without the Responses API gets as a chat request. Reasoning
 * is left out, because sources cannot decrypt it.
 */
export const serveTranslated = async <Options>(
  c: Ctx,
  raw: TurnBody,
  { turns, choices, dialect, tierName, translate }: Translated<Options>,
) => {
  const key = c.get('client').key
  const isChat = dialect === 'chat'
  const { body, dropped, options } = prepared(c, raw, turns, () => {
    const { options, ...request } = translate()
    const { include: _, ...whole } = request.body
    const input = getObjects(whole.input).filter(({ type }) => type !== 'reasoning')
    const json: JsonObject = { ...whole, input, stream: options.stream }
    const ruled = underPolicy(c, rewriteBody(raw, isChat ? responsesToChat(json) : json), (asked, rules) =>
      isChat ? chatBody(asked, rules) : responsesBody(asked, { key: rules, isNative: false }),
    )
    const hosted = isChat ? getObjects(json.tools).filter(({ type }) => type !== 'function') : []
    const dropped = [
      ...request.dropped,
      ...ruled.dropped.map((name) => (name === 'service_tier' ? tierName : name)),
      ...hosted.map(({ type }) => `tools.${getText(type)}`),
    ]
    return { body: ruled.body, dropped, options }
  })
  c.set('droppedFields', dropped)
  const asAdmitted = isChat ? { ...body, json: admittedChat(body.json) } : body
  const served = await admitTurn(c, { ...turns, body: asAdmitted, isBySource: true })
  const way: Way = { choices, path: isChat ? '/chat/completions' : '/responses', dialect, key }
  return {
    served,
    options,
    stream: (contract: Contract) => streamed(served, way, contract),
    document: (toText: (response: JsonObject) => string) =>
      document(served, way, (text) => {
        const answer = getObject(parseJson(text))
        return toText(isChat ? responseFromChat(answer) : answer)
      }),
  }
}

/** `form`: the body of a transcription and its content type. */
export const serveAudio = async (
  c: Ctx,
  { body, contentType, isStreamed }: { body: TurnBody; contentType: string; isStreamed: boolean },
  choices: readonly Choice[],
): Promise<Response> => {
  const model = choices[0]!.model.model // not empty
  const served = await admitted(c, AUDIO, { ...body, json: { model } })
  const key = c.get('client').key
  const way: Way = { choices, path: '/audio/transcriptions', dialect: 'audio', key, contentType }
  return isStreamed ? streamed(served, way, audioCopy) : document(served, way)
}

export const serveEmbeddings = async (
  c: Ctx,
  raw: TurnBody,
  turns: TurnKindOf,
  choices: readonly Choice[],
): Promise<Response> => {
  const { model, user } = raw.json
  const served = await admitted(c, turns, { ...raw, json: { model, user } })
  return document(served, { choices, path: '/embeddings', dialect: 'embeddings', key: c.get('client').key })
}

const AUDIO: TurnKindOf = { kind: 'audio', isNative: false, path: '/audio/transcriptions', accept: 'application/json' }

type Build = (asked: TurnBody, key: KeyPolicy | null) => SourceBody

const underPolicy = (c: Ctx, raw: TurnBody, build: Build): SourceBody => {
  const asked = underFastModeRule(raw, c.get('client').key, c.env.settings.current())
  const { body, dropped } = build(asked.body, asked.key)
  body.hold.resize(body.bytes.length)
  return { body, dropped: [...asked.dropped, ...dropped] }
}

const admitted = (c: Ctx, turns: TurnKindOf, body: TurnBody): Promise<Answered> =>
  admitTurn(c, { ...turns, body, passesDeltas: true, isBySource: true })

/** How a request reaches its source. */
interface Way {
  choices: readonly Choice[]
  path: string
  dialect: 'chat' | 'responses' | 'audio' | 'embeddings'
  key: KeyPolicy | null
  /** JSON when absent. */
  contentType?: string
}

const streamed = (served: Answered, way: Way, contract: Contract): Promise<Response> =>
  answerWithStream(
    {
      ...served,
      open: async (proxyDeps, turn) => {
        const seat = seated(served, way)
        const request = getRequest(served, way, { seat, accept: 'text/event-stream' })
        return openStream(proxyDeps, turn, { seat, request, dialect: way.dialect })
      },
    },
    contract,
  )

const document = async (served: Answered, way: Way, translate?: (text: string) => string): Promise<Response> => {
  const { env } = served
  const opened: SourceDocument = await withServerTiming(
    served,
    beginWith(served, { headers: false }, async (proxyDeps, turn) => {
      const seat = seated(served, way)
      const request = getRequest(served, way, { seat, accept: way.dialect === 'audio' ? '*/*' : 'application/json' })
      return openDocument(env, proxyDeps, turn, {
        seat,
        request,
        mayBeText: way.dialect === 'audio',
        ...(translate && { translate }),
      })
    }),
  )
  if (opened.end.error) throw opened.end.error
  const headers = { ...answerHeaders(served, null), 'content-type': opened.contentType }
  return new Response(opened.text, { headers })
}

/** A place at a source, noted in the turn's log. Throws `model_source_busy`. */
const seated = ({ env, turn }: Answered, { choices, key }: Way): SourceSlot => {
  const seat = reserveSlot(env.seats, choices)
  if (!seat) throw allBusy()
  const { source, model } = seat
  turn.log.source = {
    id: source.id,
    name: source.name,
    model,
    isOverflow: false,
    timeoutMs: source.timeoutMs,
    demandsUsage: needsUsage(key, turn.model),
    charge: null,
  }
  return seat
}

/** What this source is sent. The turn has its body until its commit point. */
const getRequest = (
  { c, turn }: Answered,
  { path, dialect, contentType = 'application/json' }: Way,
  { seat, accept }: { seat: SourceSlot; accept: string },
): SourceRequest => {
  const body = turn.body! // kept until the commit point
  if (dialect !== 'responses') return { path, body: body.bytes, contentType, accept }
  const { members, dropped } = toSupportedTools(body.json, seat.model)
  c.set('droppedFields', [...(c.get('droppedFields') ?? []), ...dropped])
  return { path, body: withMembers(body, members).bytes, contentType, accept }
}
