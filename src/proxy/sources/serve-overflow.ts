/** One request served by the overflow source: its budget, its body, and what is logged of it. */
import { AppError } from '../../errors.ts'
import type { ConcurrencyLimits } from '../../lib/concurrency-limits.ts'
import { estimateTokens } from '../../model/keys/reservations.ts'
import type { Choice } from '../../model/sources/sources.ts'
import type { Settings } from '../../settings/schema.ts'
import { asRequest } from '../exchange/send-attempt.ts'
import type { Flow } from '../turn/flow.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import type { Turn, TurnBody } from '../turn/turn.ts'
import { sourceCostMicros } from './cost.ts'
import { toSupportedTools } from './hosted-tools.ts'
import { needsUsage } from './needs-usage.ts'
import { openStream } from './open-stream.ts'
import type { OverflowBudget } from './overflow-budget.ts'
import { type HealthDeps, recordSourceHealth } from './record-health.ts'
import { withMembers } from './source-body.ts'
import { reserveSlot, type SourceSlot } from './source-slot.ts'

interface Served extends HealthDeps {
  choice: Choice
  settings: () => Pick<Settings, 'overflowCostUsdPerDay'>
  budget: OverflowBudget
  seats: ConcurrencyLimits
  /** Called when the budget of the day does not allow the request. */
  onBudget: () => void
}

/** Null: the budget is used up, or the source is busy or failed. Rejects only with the turn's abort reason. */
export const serveByOverflow = async (proxyDeps: ProxyDeps, turn: Turn, served: Served): Promise<Flow | null> => {
  const body = turn.body
  if (!body) return null
  const charge = await heldFor(body, served)
  if (!charge) return null
  const seat = reserveSlot(served.seats, [served.choice])
  if (!seat) {
    charge(0)
    return null
  }
  const before = { ...turn.log }
  const began = { at: proxyDeps.clock.now(), monotonic: proxyDeps.clock.monotonic() }
  takeOver(turn, seat, charge)
  try {
    const request = { path: '/responses', body: bodyFor(turn, body, seat), ...KINDS }
    const flow = await openStream(proxyDeps, turn, { seat, request, dialect: 'responses' })
    proxyDeps.log.info('a model source serves a request because the pool is at its usage limit', {
      request: turn.requestId,
      source: seat.source.id,
    })
    return flow
  } catch (err) {
    seat.release()
    if (turn.signal.aborted) throw err // the source may have worked on it, so settling charges it
    charge(0)
    const { attempts } = turn.log
    Object.assign(turn.log, before)
    const error = AppError.from(err)
    const { code, message } = error
    recordSourceHealth(served, seat.source.id, error)
    const durationMs = proxyDeps.clock.monotonic() - began.monotonic
    const outcome = { outcome: 'failed', upstreamStatus: null, code, message, considered: [] } as const
    attempts.push({ n: attempts.length + 1, accountId: null, startedAt: began.at, durationMs, ...outcome })
    proxyDeps.log.warn('the overflow source failed', { source: seat.source.id, code, message })
    return null
  }
}

const KINDS = { contentType: 'application/json', accept: 'text/event-stream' }

/** Most text has about four bytes a token. */
const BYTES_PER_TOKEN = 4
const MICROS_PER_USD = 1_000_000

/** Null: the budget does not allow it, or cannot be kept because the model has no price. */
const heldFor = async ({ bytes }: TurnBody, { choice, settings, budget, clock, onBudget }: Served) => {
  const usage = {
    inputTokens: Math.ceil(bytes.length / BYTES_PER_TOKEN),
    cachedInputTokens: 0,
    outputTokens: estimateTokens(bytes.length).outputTokens,
  }
  const expected = sourceCostMicros(choice.model, { usage, audioSeconds: null })
  const limitMicros = Math.round(settings().overflowCostUsdPerDay * MICROS_PER_USD)
  const isUnpriced = expected === null && limitMicros > 0
  const charge = isUnpriced ? null : await budget.hold(expected ?? 0, { limitMicros, now: clock.now() })
  if (!charge) onBudget()
  return charge
}

/** From here on the turn is the source's: no account is charged for it or owns its conversation. */
const takeOver = (turn: Turn, { source, model }: SourceSlot, charge: (costMicros: number) => void): void => {
  turn.session?.drop() // its connection does not know the response, so the client sends the whole conversation next time
  Object.assign(turn.log, {
    accountId: null,
    moved: false,
    paidCredits: false,
    source: {
      id: source.id,
      name: source.name,
      model,
      isOverflow: true,
      timeoutMs: source.timeoutMs,
      demandsUsage: needsUsage(turn.client.key, turn.model),
      charge,
    },
  } satisfies Partial<Turn['log']>)
}

const bodyFor = (turn: Turn, body: TurnBody, { model }: SourceSlot): Uint8Array<ArrayBuffer> => {
  const { members } = toSupportedTools(body.json, model)
  const renamed = body.json.model === model.model ? {} : { model: model.model }
  return asRequest(turn, withMembers(body, { ...members, ...renamed }).bytes)
}
