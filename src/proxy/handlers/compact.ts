/**
 * `POST …/responses/compact`: the upstream's compact route or, where that no longer exists, a Responses turn with a
 * compaction trigger.
 */
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { getText, type JsonObject } from '../../lib/json.ts'
import { type Answered, answerWithJson } from '../downstream/answer.ts'
import { compactFromResponse, compactToResponses } from '../formats/compact.ts'
import { normaliseResponses } from '../formats/v1-responses.ts'
import { enforcedMembers, underFastModeRule, withKeyPolicy } from '../ingress/key-policy.ts'
import { rewriteBody } from '../ingress/rewrite.ts'
import { spliceBody } from '../ingress/splice.ts'
import { recallRequest } from '../responses-store/stateful-request.ts'
import { cannotCompactError } from '../sources/source-errors.ts'
import { attempt } from '../turn/attempts.ts'
import type { Flow } from '../turn/flow.ts'
import { newProgress, type Progress } from '../turn/progress.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import { releaseRequest, type Turn, type TurnBody } from '../turn/turn.ts'
import {
  admitTurn,
  getChoices,
  prepared,
  readTurnBody,
  rejectPreviousResponse,
  type TurnKindOf,
  turnRoute,
} from './turn-route.ts'

const compact = (isNative: boolean) => {
  const turns: TurnKindOf = {
    kind: 'compaction',
    isNative,
    path: '/codex/responses/compact',
    accept: 'application/json',
  }
  return turnRoute(async (c) => {
    const served = await admitCompact(c, turns)
    let retained: JsonObject[] | null = null
    const open = async (proxyDeps: ProxyDeps, turn: Turn): Promise<Flow> => {
      const progress = newProgress(proxyDeps, turn)
      try {
        return await attempt(proxyDeps, turn, progress)
      } catch (err) {
        if (!isRouteGone(err) || !turn.body) throw err
        const request = compactToResponses(turn.body.json)
        retained = request.retained
        c.set('droppedFields', [...(c.get('droppedFields') ?? []), ...request.dropped])
        return attemptLongWay(proxyDeps, turn, { body: rewriteBody(turn.body, request.body), progress })
      }
    }
    return answerWithJson({ ...served, open }, (response) =>
      JSON.stringify(retained === null ? response : compactFromResponse(response, retained)),
    )
  })
}

/** A separate function, so that the closure that builds the answer does not keep the request (see `responses.ts`). */
const admitCompact = async (c: Ctx, turns: TurnKindOf): Promise<Answered> => {
  const raw = await readTurnBody(c, turns)
  const isOfSource = getChoices(c, raw, 'responses').length > 0
  const body = prepared(c, raw, turns, () => {
    if (isOfSource && !c.env.pool.offers(getText(raw.json.model))) throw cannotCompactError()
    if (!turns.isNative) return translated(c, raw)
    rejectPreviousResponse(raw.json.previous_response_id)
    const { body, key } = underFastModeRule(raw, c.get('client').key, c.env.settings.current())
    return spliceBody(body, enforcedMembers(body.json, key))
  })
  return admitTurn(c, { ...turns, body })
}

/** The new turn takes over the request body and releases it at its commit point. */
const attemptLongWay = async (
  proxyDeps: ProxyDeps,
  turn: Turn,
  { body, progress }: { body: TurnBody; progress: Progress },
): Promise<Flow> => {
  const longWay: Turn = { ...turn, body, path: '/codex/responses', accept: 'text/event-stream' }
  turn.body = null
  try {
    return await attempt(proxyDeps, longWay, { ...progress, last: null })
  } catch (err) {
    releaseRequest(longWay)
    throw err
  }
}

/**
 * The upstream's compact route is unary and stores nothing, so it takes neither `stream` nor `store` (Codex CLI 0.169).
 */
const translated = (c: Ctx, raw: TurnBody): TurnBody => {
  const asked = underFastModeRule(raw, c.get('client').key, c.env.settings.current())
  const recalled = recallRequest(c.env, asked.body, c.get('client'))
  const { body, dropped } = normaliseResponses(recalled.body, {}, recalled.history)
  c.set('droppedFields', [...asked.dropped, ...dropped])
  const { stream: _stream, store: _store, ...unary } = withKeyPolicy(body, asked.key)
  return rewriteBody(asked.body, unary, recalled.texts)
}

/** A 404 about the route has no code; one about the model has. */
const isRouteGone = (err: unknown): boolean =>
  err instanceof AppError && err.status === 404 && !err.extra.upstream?.code

export const nativeCompact = compact(true)
export const publicCompact = compact(false)
