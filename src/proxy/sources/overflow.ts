/**
 * Overflow: while the whole pool is at its usage limit, a model source serves requests that any server could answer.
 * Each request asks the pool first, so the pool serves again as soon as it can.
 */
import { AppError } from '../../errors.ts'
import type { ConcurrencyLimits } from '../../lib/concurrency-limits.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import { getObjects } from '../../lib/json.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'
import { type Choice, isInSourceScope, type Source, type Sources } from '../../model/sources/sources.ts'
import type { Settings } from '../../settings/schema.ts'
import type { Flow } from '../turn/flow.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import type { Turn } from '../turn/turn.ts'
import type { OverflowBudget } from './overflow-budget.ts'
import type { HealthDeps } from './record-health.ts'

interface Deps extends HealthDeps {
  sources: Sources
  settings: () => Readonly<Settings>
  budget: OverflowBudget
  seats: ConcurrencyLimits
}

/** What the attention list says. */
export interface OverflowUse {
  sourceName: string
  /** Requests within the hour before. */
  count: number
  /** Requests that the budget of the day left out, within the same time. */
  overBudget: number
}

type OverflowSettings = Pick<Settings, 'overflowSourceId' | 'overflowModel' | 'overflowKeys' | 'overflowCostUsdPerDay'>

export class Overflow {
  readonly #deps: Deps
  readonly #served = new LastHour()
  readonly #left = new LastHour()
  #sourceName = ''

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /**
   * The answer of the source to a turn that the pool rejected with `err`; null where the pool's error is the answer: the
   * turn does not qualify, the budget is used up, or the source failed too.
   */
  async serve(proxyDeps: ProxyDeps, turn: Turn, err: unknown): Promise<Flow | null> {
    if (!isPoolUsedUp(err)) return null
    const choice = this.choiceFor(turn.model, turn.client.key)
    if (!choice || !isServedAnywhere(turn)) return null
    const { serveByOverflow } = await import('./serve-overflow.ts')
    const flow = await serveByOverflow(proxyDeps, turn, {
      choice,
      ...this.#deps,
      onBudget: () => this.#left.note(this.#now),
    })
    if (!flow) return null
    this.#sourceName = choice.source.name
    this.#served.note(this.#now)
    return flow
  }

  /** The source and its model that would serve a request of this key while the pool is used up; null: none. */
  choiceFor(
    model: string | null,
    key: Pick<KeyPolicy, 'sourceIds' | 'allowedModels' | 'allowOverflow'> | null,
  ): Choice | null {
    const settings = this.#deps.settings()
    const source = settings.overflowSourceId === null ? null : this.#deps.sources.byId(settings.overflowSourceId)
    return source && mayOverflow(settings, key) ? choiceAt(source, settings.overflowModel ?? model, key) : null
  }

  /** Null: not used within the last hour. */
  recent(): OverflowUse | null {
    const [count, overBudget] = [this.#served.count(this.#now), this.#left.count(this.#now)]
    return count + overBudget === 0 ? null : { sourceName: this.#sourceName, count, overBudget }
  }

  get #now(): number {
    return this.#deps.clock.now()
  }
}

/** The aggregate over every account the turn may use. */
const isPoolUsedUp = (err: unknown): boolean => err instanceof AppError && err.code === 'usage_limit_reached'

const mayOverflow = ({ overflowKeys }: OverflowSettings, key: Pick<KeyPolicy, 'allowOverflow'> | null): boolean =>
  overflowKeys === 'all' || (key?.allowOverflow ?? false)

const choiceAt = (
  source: Source,
  name: string | null,
  key: Pick<KeyPolicy, 'sourceIds' | 'allowedModels'> | null,
): Choice | null => {
  const model = source.models.get(name ?? '')
  if (!model || !source.supports.responses || !model.supportsStreaming || !isInSourceScope(key, source)) return null
  return key?.allowedModels?.has(model.model) === false ? null : { source, model }
}

/** Only the pool has what other turns need: their account, its files, its ciphertext or its connection. */
const isServedAnywhere = ({ kind, relay, restricted, chain, fileOwner, hasCiphertext, body }: Turn): boolean =>
  kind === 'normal' &&
  relay === null &&
  !restricted &&
  chain === null &&
  fileOwner === null &&
  !hasCiphertext &&
  body !== null &&
  !getObjects(body.json.input).some(namesFile)

const namesFile = ({ content, output }: Record<string, unknown>): boolean =>
  [content, output].some((parts) => getObjects(parts).some(({ file_id: id }) => typeof id === 'string'))

/** Counts by minute. */
class LastHour {
  #minutes: { minute: number; count: number }[] = []

  note(now: number): void {
    const minute = Math.floor(now / MINUTE_MS)
    const last = this.#minutes.at(-1)
    if (last?.minute === minute) last.count++
    else this.#minutes = [...this.#recent(minute), { minute, count: 1 }]
  }

  count(now: number): number {
    return this.#recent(Math.floor(now / MINUTE_MS)).reduce((sum, { count }) => sum + count, 0)
  }

  #recent(minute: number) {
    return this.#minutes.filter((one) => one.minute > minute - MINUTES && one.minute <= minute)
  }
}

const MINUTES = 60
