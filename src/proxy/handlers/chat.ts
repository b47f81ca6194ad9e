/** `POST /v1/chat/completions`: translated to a Responses turn and back. */
import type { Ctx } from '../../bindings.ts'
import { answerWithJson, answerWithStream } from '../answer.ts'
import { chatContract } from '../contracts.ts'
import { chatFromResponse } from '../formats/chat-json.ts'
import { withSummary } from '../formats/chat-reasoning.ts'
import { withKeyPolicy } from '../key-policy.ts'
import { OTHER_BODY_BYTES } from '../raw-body.ts'
import { rewritten } from '../rewrite.ts'
import { admitTurn, prepared, readTurnBody, type TurnKindOf, turnRoute } from './turn-route.ts'

const CHAT: TurnKindOf = { kind: 'normal', isNative: false, path: '/codex/responses', accept: 'text/event-stream' }

export const chatCompletions = turnRoute(async (c) => {
  const { served, chat } = await admitChat(c)
  const head = {
    id: c.env.random.id('chatcmpl').replace('_', '-'),
    created: Math.floor(c.env.clock.now() / 1000),
    model: chat.model,
    isJson: chat.isJson,
    isLegacy: chat.isLegacy,
  }
  return chat.stream
    ? answerWithStream(served, chatContract({ ...head, includeUsage: chat.includeUsage }))
    : answerWithJson(served, (response) => chatFromResponse(response, head))
})

/** A separate function, so that the closure that builds the answer does not keep the request (see `responses.ts`). */
const admitChat = async (c: Ctx) => {
  const { chatToResponses } = await import('../formats/chat-request.ts') // its schemas take half a megabyte
  const raw = await readTurnBody(c, CHAT, OTHER_BODY_BYTES)
  const { body, chat } = prepared(c, raw, CHAT, () => {
    const request = chatToResponses(raw.json)
    c.set('droppedFields', request.dropped)
    return { body: rewritten(raw, withSummary(withKeyPolicy(request.body, c.get('client').key))), chat: request.chat }
  })
  return { served: admitTurn(c, { ...CHAT, route: c.req.path, body }), chat }
}
