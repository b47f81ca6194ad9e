/**
 * `POST /v1/messages`: a request in Anthropic's format, converted to a Responses turn and back. And `POST
 * …/count_tokens`, an estimate.
 */
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { messagesKey } from '../../http/gates.ts'
import type { JsonObject } from '../../lib/json.ts'
import { claudeModel } from '../../model/catalog/claude-models.ts'
import { type Choice, choicesFor } from '../../model/sources/sources.ts'
import { type Answered, answerWithJson, answerWithStream } from '../downstream/answer.ts'
import { messagesContract } from '../downstream/contracts.ts'
import { messagesErrors } from '../formats/messages-errors.ts'
import {
  type MessagesModel,
  type MessagesOptions,
  messagesToResponses,
  requireMessages,
} from '../formats/messages-request.ts'
import { messageFromResponse } from '../formats/messages-stream.ts'
import { estimateInputTokens } from '../formats/messages-usage.ts'
import { isSameEffort, underFastModeRule, withKeyPolicy } from '../ingress/key-policy.ts'
import { OTHER_BODY_BYTES } from '../ingress/raw-body.ts'
import { rewriteBody } from '../ingress/rewrite.ts'
import { requireModelName } from '../turn/admit.ts'
import type { TurnBody } from '../turn/turn.ts'
import { untilCatalogKnown } from './models.ts'
import { readSmallBody } from './small-body.ts'
import { admitTurn, prepared, readTurnBody, type TurnKindOf, turnRoute } from './turn-route.ts'

const MESSAGES: TurnKindOf = { kind: 'normal', isNative: false, path: '/codex/responses', accept: 'text/event-stream' }

export const messages = turnRoute(
  async (c) => {
    const raw = await readTurnBody(c, MESSAGES, OTHER_BODY_BYTES)
    await untilCatalogKnown(c)
    const offer = getSources(c, raw.json)
    return offer ? answerFromSource(c, raw, offer) : answerMessages(c, await admitMessages(c, raw))
  },
  { gate: messagesKey },
)

/** Throws `invalid_request_error` and `model_not_found`. */
export const countTokens = turnRoute(
  async (c) => {
    const json = await readSmallBody(c)
    requireMessages(json)
    await untilCatalogKnown(c)
    const { slug } = servingModel(c, json)
    c.header('x-sluice-estimate', 'true')
    return c.json({ input_tokens: c.env.tokenRatios.corrected(slug, estimateInputTokens(json)) })
  },
  { gate: messagesKey },
)

const answerMessages = (c: Ctx, { served, ...asked }: Awaited<ReturnType<typeof admitMessages>>): Promise<Response> => {
  const { contract, toText, finish } = writer(c, served, asked)
  return finish(() =>
    asked.options.stream ? answerWithStream(served, contract('responses')) : answerWithJson(served, toText),
  )
}

interface Offer {
  choices: Choice[]
  dialect: 'responses' | 'chat'
}

/** Sources with the Responses API come first, because less is lost in translation. Null: the pool serves it. */
const getSources = (c: Ctx, json: JsonObject): Offer | null => {
  const { model } = json
  if (c.env.sources.enabled.length === 0 || typeof model !== 'string') return null
  const found = findModel(c, c.get('client').key?.enforcedModel ?? model, json)
  return found && offerOf(c, found.slug, json)
}

const offerOf = (c: Ctx, model: string, { stream }: JsonObject): Offer | null => {
  const { key } = c.get('client')
  for (const dialect of ['responses', 'chat'] as const) {
    const choices = choicesFor(c.env, { model, key, capability: dialect, isStreamed: stream === true })
    if (choices.length > 0) return { choices, dialect }
  }
  return null
}

const answerFromSource = async (c: Ctx, raw: TurnBody, offer: Offer): Promise<Response> => {
  const { serveTranslated } = await import('../sources/serve.ts')
  const { served, options, document, stream } = await serveTranslated(c, raw, {
    ...offer,
    turns: MESSAGES,
    tierName: 'speed',
    translate: () => translated(c, raw),
  })
  const { contract, toText, finish } = writer(c, served, { options, estimate: estimateInputTokens(raw.json) })
  return finish(() => (options.stream ? stream(contract(offer.dialect)) : document(toText)))
}

interface Asked {
  options: MessagesOptions
  estimate: number
}

/** Writes a Responses answer as a message. */
const writer = (c: Ctx, { turn }: Answered, { options, estimate }: Asked) => {
  const requestId = c.get('requestId')
  const errors = messagesErrors({ tokens: turn.estimate.inputTokens, maximum: windowOf(c, turn.model) })
  const { stream: _, ...shape } = options
  const { tokenRatios, random } = c.env
  const onInputTokens = (actual: number) => {
    if (turn.model !== null) tokenRatios.learn(turn.model, { estimate, actual })
  }
  const events = { ...shape, id: random.id('msg'), onInputTokens }
  return {
    contract: (dialect: Offer['dialect']) => messagesContract({ ...events, requestId, errors }, dialect),
    toText: (response: JsonObject) => JSON.stringify(messageFromResponse(response, events)),
    finish: async (open: () => Promise<Response>): Promise<Response> => {
      try {
        const answer = await open()
        answer.headers.set('request-id', requestId) // Anthropic clients expect this header
        return answer
      } catch (err) {
        throw errors(AppError.from(err))
      }
    },
  }
}

/** A separate function, so that the closure that builds the answer does not keep the request (see `responses.ts`). */
const admitMessages = async (c: Ctx, raw: TurnBody) => {
  const { key } = c.get('client')
  const { body, options } = prepared(c, raw, MESSAGES, () => {
    const request = translated(c, raw)
    const ruled = underFastModeRule({ ...raw, json: request.body }, key, c.env.settings.current())
    const dropped = ruled.dropped.length > 0 ? ['speed'] : []
    c.set('droppedFields', [...dropped, ...request.dropped])
    return { body: rewriteBody(raw, withKeyPolicy(ruled.body.json, ruled.key)), options: request.options }
  })
  const served = await admitTurn(c, { ...MESSAGES, body })
  return { served, options, estimate: estimateInputTokens(raw.json) }
}

const translated = (c: Ctx, { json }: TurnBody) =>
  messagesToResponses(json, servingModel(c, json), c.req.header('x-claude-code-session-id') ?? null)

/** Throws `model_not_found`. */
const servingModel = (c: Ctx, json: JsonObject): MessagesModel => {
  const { key } = c.get('client')
  const asked = key?.enforcedModel ?? requireModelName(json.model)
  const found = findModel(c, asked, json)
  if (!found) throw new AppError('model_not_found', { message: `The model '${asked}' does not exist.`, param: 'model' })
  // The client cannot change an effort of the setting, so one that its key does not allow is ignored.
  const allowed = key?.efforts.allowed && [...key.efforts.allowed]
  const isAllowed = (effort: string) => allowed?.some((one) => isSameEffort(one, effort)) ?? true
  const effort = found.effort !== null && isAllowed(found.effort) ? found.effort : null
  return { slug: found.slug, effort, efforts: c.env.catalog.getEfforts(found.slug).filter(isAllowed) }
}

const findModel = (c: Ctx, asked: string, json: JsonObject) => {
  const { catalog, settings, pool, sources } = c.env
  const { claudeModels } = settings.current()
  /** A source may have the model for embeddings only, for example. */
  const isFit = (slug: string) =>
    pool.offers(slug) || !sources.enabled.some(({ models }) => models.has(slug)) || offerOf(c, slug, json) !== null
  return claudeModel(catalog, asked, { policy: c.get('client').key, claudeModels, isFit })
}

const DEFAULT_WINDOW = 272_000

const windowOf = (c: Ctx, model: string | null): number => {
  const window: unknown = model === null ? null : c.env.catalog.find(model)?.context_length
  return typeof window === 'number' ? window : DEFAULT_WINDOW
}
