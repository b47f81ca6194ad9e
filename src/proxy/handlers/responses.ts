/**
 * `POST /backend-api/codex/responses`, always streamed and never rewritten, and `POST /v1/responses`, which is
 * normalised first.
 */
import type { Ctx } from '../../boot/bindings.ts'
import { type Answered, answerWithJson, answerWithStream } from '../downstream/answer.ts'
import { contractOptions, NativeContract, publicContract } from '../downstream/contracts.ts'
import { enforcedMembers, underFastModeRule } from '../ingress/key-policy.ts'
import { alwaysStreamed, spliceBody } from '../ingress/splice.ts'
import { echoed, type ResponseEcho } from '../responses-store/response-echo.ts'
import { statefulRequest } from '../responses-store/stateful-request.ts'
import type { TurnBody } from '../turn/turn.ts'
import {
  admitTurn,
  getChoices,
  prepared,
  readTurnBody,
  rejectPreviousResponse,
  type TurnKindOf,
  turnRoute,
} from './turn-route.ts'

const PUBLIC: TurnKindOf = { kind: 'normal', isNative: false, path: '/codex/responses', accept: 'text/event-stream' }
const NATIVE: TurnKindOf = { ...PUBLIC, isNative: true }

export const nativeResponses = turnRoute(async (c) => {
  const raw = await readTurnBody(c, NATIVE)
  const bySource = await answerBySource(c, raw, NATIVE)
  if (bySource) return bySource
  const body = prepared(c, raw, NATIVE, () => nativeBody(c, raw))
  const served = await admitTurn(c, { ...NATIVE, passesDeltas: true, body })
  return answerWithStream(served, new NativeContract(contractOptions(c.env, c.get('client'), served.turn.model)))
})

export const publicResponses = turnRoute(async (c) => {
  const raw = await readTurnBody(c, PUBLIC)
  const bySource = await answerBySource(c, raw, PUBLIC)
  return bySource ?? answerPublic(c, await admitPublic(c, raw))
})

/** Null: the pool serves it. */
const answerBySource = async (c: Ctx, raw: TurnBody, turns: TurnKindOf): Promise<Response | null> => {
  const choices = getChoices(c, raw, 'responses', turns.isNative || raw.json.stream === true)
  return choices.length > 0 ? (await import('../sources/serve.ts')).serveResponses(c, raw, turns, choices) : null
}

const nativeBody = (c: Ctx, raw: TurnBody): TurnBody => {
  rejectPreviousResponse(raw.json.previous_response_id)
  const { body, key } = underFastModeRule(raw, c.get('client').key, c.env.settings.current())
  return spliceBody(body, { ...alwaysStreamed(body.json), ...enforcedMembers(body.json, key) })
}

interface AdmittedPublic {
  served: Answered
  echo: ResponseEcho
  wantsStream: boolean
}

const admitPublic = async (c: Ctx, raw: TurnBody): Promise<AdmittedPublic> => {
  const wantsStream = raw.json.stream === true
  const { body, dropped, echo, toStore } = prepared(c, raw, PUBLIC, () => statefulRequest(c.env, raw, c.get('client')))
  c.set('droppedFields', dropped)
  const served = await admitTurn(c, { ...PUBLIC, passesDeltas: wantsStream, body })
  served.turn.recording = toStore && c.env.responses.record(toStore)
  return { served, echo, wantsStream }
}

/** A separate function: the closure stays in memory with everything in its scope, which must not be the whole request. */
const answerPublic = (c: Ctx, { served, echo, wantsStream }: AdmittedPublic): Promise<Response> => {
  const { model, recording } = served.turn
  if (wantsStream) {
    const options = { ...contractOptions(c.env, c.get('client'), model), echo, recording }
    return answerWithStream(served, publicContract(options))
  }
  return answerWithJson(served, (response) => {
    const document = echoed(response, echo)
    const text = JSON.stringify(document)
    recording?.finish(document, text)
    return text
  })
}
