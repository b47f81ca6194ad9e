/** `POST /v1/chat/completions`: translated to a Responses turn and back. */
import type { Ctx } from '../../boot/bindings.ts'
import { getObjects, parseJson } from '../../lib/json.ts'
import { answerWithJson, answerWithStream } from '../downstream/answer.ts'
import { chatContract } from '../downstream/contracts.ts'
import { chatFromResponse } from '../formats/chat-json.ts'
import { withSummary } from '../formats/chat-reasoning.ts'
import { withCiphertext } from '../formats/v1-responses.ts'
import { underFastModeRule, withKeyPolicy } from '../ingress/key-policy.ts'
import { OTHER_BODY_BYTES } from '../ingress/raw-body.ts'
import { rewriteBody } from '../ingress/rewrite.ts'
import { storeScope } from '../responses-store/stateful-request.ts'
import type { TurnBody } from '../turn/turn.ts'
import { admitTurn, getChoices, prepared, readTurnBody, type TurnKindOf, turnRoute } from './turn-route.ts'

const CHAT: TurnKindOf = { kind: 'normal', isNative: false, path: '/codex/responses', accept: 'text/event-stream' }

export const chatCompletions = turnRoute(async (c) => {
  const raw = await readTurnBody(c, CHAT, OTHER_BODY_BYTES)
  const choices = getChoices(c, raw, 'chat')
  if (choices.length > 0) return (await import('../sources/serve.ts')).serveChat(c, raw, CHAT, choices)
  return answerFromPool(c, await admitChat(c, raw))
})

const answerFromPool = (c: Ctx, { served, chat }: Awaited<ReturnType<typeof admitChat>>): Promise<Response> => {
  const head = {
    id: c.env.random.id('chatcmpl').replace('_', '-'),
    created: Math.floor(c.env.clock.now() / 1000),
    model: chat.model,
    isJson: chat.isJson,
    isLegacy: chat.isLegacy,
  }
  const { recording } = served.turn
  return chat.stream
    ? answerWithStream(served, chatContract({ ...head, includeUsage: chat.includeUsage }, recording))
    : answerWithJson(served, (response) => {
        const document = chatFromResponse(response, head)
        recording?.finishChat(response)
        return JSON.stringify(document)
      })
}

/** A separate function, so that the closure that builds the answer does not keep the request (see `responses.ts`). */
const admitChat = async (c: Ctx, raw: TurnBody) => {
  const { chatToResponses } = await import('../formats/chat-request.ts') // its schemas take half a megabyte
  const { responses } = c.env
  const client = c.get('client')
  const isStored = responses.isOn && raw.json.store !== false
  const callIds: string[] = []
  const reasoningBefore = (callId: string) => {
    const items = responses.reasoningBefore(storeScope(client), callId)
    if (items.length > 0) callIds.push(callId)
    return getObjects(items.map(({ text }) => parseJson(text)))
  }
  const { body, chat } = prepared(c, raw, CHAT, () => {
    const asked = underFastModeRule(raw, client.key, c.env.settings.current())
    const request = chatToResponses(asked.body.json, isStored ? reasoningBefore : undefined)
    c.set('droppedFields', [...asked.dropped, ...request.dropped])
    const whole = isStored ? withCiphertext(request.body) : request.body
    return { body: rewriteBody(asked.body, withSummary(withKeyPolicy(whole, asked.key))), chat: request.chat }
  })
  const served = await admitTurn(c, { ...CHAT, body })
  if (isStored) served.turn.recording = responses.record({ ...NO_ITEMS, scope: storeScope(client), callIds })
  return { served, chat }
}

/** Chat clients send their whole history, so only the reasoning they cannot send is stored. */
const NO_ITEMS = { previous: null, input: '[]', inputIds: [], instructions: [], itemIds: [] }
