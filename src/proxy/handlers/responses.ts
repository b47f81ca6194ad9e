/** `POST /backend-api/codex/responses`, always a stream and never rewritten, and `POST /v1/responses`, normalised first. */
import type { Client } from '../../auth/client-key.ts'
import type { Bindings } from '../../bindings.ts'
import type { JsonObject } from '../../lib/json.ts'
import { answerWithJson, answerWithStream } from '../answer.ts'
import { type ContractOptions, NativeContract, publicContract } from '../contracts.ts'
import { normaliseResponses } from '../formats/v1-responses.ts'
import { enforcedMembers, withKeyPolicy } from '../key-policy.ts'
import type { RawBody } from '../raw-body.ts'
import { spliceMembers } from '../splice.ts'
import { admitTurn, readTurnBody, refusePreviousResponse, rewritten, turnRoute } from './turn-route.ts'

const RESPONSES_PATH = '/codex/responses'
const SSE = 'text/event-stream'

export const nativeResponses = turnRoute(async (c) => {
  const raw = await readTurnBody(c, { isNative: true })
  const body = releasing(raw, () => {
    refusePreviousResponse(raw.json.previous_response_id)
    return spliced(raw, { ...alwaysStreamed(raw.json), ...enforcedMembers(raw.json, c.get('client').key) })
  })
  const served = admitTurn(c, {
    route: c.req.path,
    kind: 'normal',
    isNative: true,
    path: RESPONSES_PATH,
    accept: SSE,
    passesDeltas: true,
    body,
  })
  return answerWithStream(served, new NativeContract(contractOptions(c.env, c.get('client'))))
})

export const publicResponses = turnRoute(async (c) => {
  const raw = await readTurnBody(c, { isNative: false })
  const wantsStream = raw.json.stream === true
  const body = releasing(raw, () => {
    const { body: normal, dropped } = normaliseResponses(raw.json)
    c.set('droppedFields', dropped)
    return rewritten(raw, withKeyPolicy(normal, c.get('client').key))
  })
  const served = admitTurn(c, {
    route: c.req.path,
    kind: 'normal',
    isNative: false,
    path: RESPONSES_PATH,
    accept: SSE,
    passesDeltas: wantsStream,
    body,
  })
  return wantsStream
    ? answerWithStream(served, publicContract(contractOptions(c.env, c.get('client'))))
    : answerWithJson(served, (response) => response)
})

/** What the upstream demands of every turn. */
const alwaysStreamed = ({ stream, store }: JsonObject): JsonObject => ({
  ...(stream !== true && { stream: true }),
  ...(store !== false && { store: false }),
})

/** The body with `members` set; anything else stays as the client wrote it. */
export const spliced = (raw: RawBody, members: JsonObject): RawBody => {
  if (Object.keys(members).length === 0) return raw
  return { bytes: spliceMembers(raw.bytes, members), json: { ...raw.json, ...members }, hold: raw.hold }
}

export const contractOptions = ({ clock, settings }: Bindings, { key }: Client): ContractOptions => ({
  createdAt: Math.floor(clock.now() / 1000),
  hidesQuota: key !== null && settings.current().hideUpstreamQuotaFromApiKeys,
})

/** Runs `work`, and gives the body's share of the memory back when it throws. */
export const releasing = <T>(raw: RawBody, work: () => T): T => {
  try {
    return work()
  } catch (err) {
    raw.hold.release()
    throw err
  }
}
