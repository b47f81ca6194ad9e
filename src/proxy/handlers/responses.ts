/** `POST /backend-api/codex/responses`, always a stream and never rewritten, and `POST /v1/responses`, normalised first. */
import type { Context } from 'hono'
import type { AppEnv } from '../../bindings.ts'
import { clientKey, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { answerWithJson, answerWithStream } from '../answer.ts'
import { type ContractOptions, nativeContract, publicContract } from '../contracts.ts'
import { normaliseResponses } from '../formats/v1-responses.ts'
import type { RawBody } from '../raw-body.ts'
import { spliceMembers } from '../splice.ts'
import { admitTurn, longLived, readTurnBody, refusePreviousResponse, rewritten } from './turn-route.ts'

const RESPONSES_PATH = '/codex/responses'
const SSE = 'text/event-stream'

export const nativeResponses = createHandlers(clientKey('optional'), restricted('refuse'), longLived, async (c) => {
  const raw = await readTurnBody(c, { isNative: true })
  const body = releasing(raw, () => {
    refusePreviousResponse(raw.json.previous_response_id)
    return enforced(raw, c.var.client.key?.enforcedModel ?? null)
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
  return answerWithStream(served, nativeContract(contractOptions(c)))
})

export const publicResponses = createHandlers(clientKey('optional'), restricted('refuse'), longLived, async (c) => {
  const raw = await readTurnBody(c, { isNative: false })
  const wantsStream = raw.json.stream === true
  const body = releasing(raw, () => {
    const { body: normal, dropped } = normaliseResponses(raw.json)
    c.set('droppedFields', dropped)
    return rewritten(raw, withKeyPolicy(c, normal))
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
    ? answerWithStream(served, publicContract(contractOptions(c)))
    : answerWithJson(served, (response) => response)
})

/** What the upstream demands and the key enforces; anything else stays as the client wrote it. */
const enforced = (raw: RawBody, model: string | null): RawBody => {
  const members: Record<string, unknown> = {}
  if (raw.json.stream !== true) members.stream = true
  if (raw.json.store !== false) members.store = false
  if (model !== null && raw.json.model !== model) members.model = model
  if (Object.keys(members).length === 0) return raw
  return { bytes: spliceMembers(raw.bytes, members), json: { ...raw.json, ...members }, hold: raw.hold }
}

/** On `/v1`, where bodies are translated anyway, a key's effort and tier are put in as well as its model. */
export const withKeyPolicy = (c: Context<AppEnv>, body: Record<string, unknown>): Record<string, unknown> => {
  const { key } = c.var.client
  if (!key) return body
  const reasoning = typeof body.reasoning === 'object' && body.reasoning !== null ? body.reasoning : {}
  return {
    ...body,
    ...(key.enforcedModel !== null && { model: key.enforcedModel }),
    ...(key.efforts.enforced !== null && { reasoning: { ...reasoning, effort: key.efforts.enforced } }),
    ...(key.tier !== null && { service_tier: key.tier === 'auto' || key.tier === 'default' ? undefined : key.tier }),
  }
}

export const contractOptions = (c: Context<AppEnv>): ContractOptions => ({
  createdAt: Math.floor(c.env.clock.now() / 1000),
  hidesQuota: c.var.client.key !== null && c.env.settings.current().hideUpstreamQuotaFromApiKeys,
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
