/** Why an account was used and the others were not, in words: for a logged request, and for the routing simulator. */
import type { AppError } from '../../errors.ts'
import { isoOrNull } from '../../lib/iso.ts'
import type { Settings } from '../../settings/schema.ts'
import { TRANSCRIPTION_MODEL } from '../catalog/audio-models.ts'
import { isImageModel } from '../catalog/image-models.ts'
import type { KeyPolicy } from '../keys/key-ring.ts'
import { getLimitError } from '../keys/reservations.ts'
import type { Choice } from '../sources/sources.ts'
import { type Considered, type Selection, skipText } from './skip-reasons.ts'

/** An account that routing considered. */
export interface CandidateView {
  accountId: string
  /** null: it was deleted. */
  accountName: string | null
  /** The strategy's score, in its own unit; null: it was not ranked. */
  score: number | null
  /** null: it was used, or could have been. */
  skipped: string | null
  /** Why it has no outbound proxy; only with `no_route`. */
  egressReason: string | null
  /** `skipped` in words. */
  reason: string | null
  /** ISO 8601: when the reason ends, if known. */
  until: string | null
  /** Whole days until its reset, where accounts that reset sooner are used first; null: that is off, or the reset is not known. */
  resetDays: number | null
  /** On the owner, if a move was weighed: percent of its remaining quota that another such request uses. Otherwise null. */
  stayPercent: number | null
  /** On other accounts then: percent of their remaining quota that reading the cached tokens again would use. */
  movePercent: number | null
}

/** Which account a request would use now. */
export interface Explanation {
  /** The requested model, or the one the key enforces. null: any. */
  model: string | null
  apiKey: { id: string; name: string } | null
  strategy: Settings['routingStrategy']
  /** `source`: a model source would serve it. `refused`: the key rejects the request. */
  outcome: 'chosen' | 'source' | 'wait' | 'none' | 'refused'
  chosen: { accountId: string; accountName: string | null } | null
  /** The model source that would serve it. */
  source: { sourceId: string; sourceName: string } | null
  /** The outcome in a sentence. */
  sentence: string
  /** The chosen one first, then the other available ones by score, then the rest. */
  candidates: CandidateView[]
}

/** The part of the pool an explanation needs. */
interface Chooser {
  offers(model: string | null): boolean
  explain(needs: ReturnType<typeof toNeeds>): Selection
}

interface Selecting {
  /** The model after applying the key's policy. Null means any. */
  model: string | null
  key: KeyPolicy | null
  settings: Pick<Settings, 'proxyAccountStreamLimit'>
}

/** What routing would do with a new conversation of this model and key. Changes nothing. */
export const dryRun = (pool: Pick<Chooser, 'explain'>, wanted: Selecting): Selection => pool.explain(toNeeds(wanted))

const toNeeds = ({ model, key, settings }: Selecting) => ({
  model,
  tried: new Set<string>(),
  scope: key?.scope ?? null,
  owner: null,
  restricted: false as const,
  isOpportunistic: key?.trafficClass === 'opportunistic',
  keyOwnerId: key?.ownerUserId ?? null,
  streamCap: settings.proxyAccountStreamLimit,
  surface: getSurface(model),
})

interface Question {
  /** The sources that come before the pool, in their order, and the one for overflow. */
  bySource?: { direct: Choice | null; overflow: Choice | null }
  model: string | null
  key: KeyPolicy | null
  settings: Pick<Settings, 'routingStrategy' | 'proxyAccountStreamLimit'>
  /** The share of the key's owner. Null if they have none. */
  share?: { isBorrowing: boolean; error: AppError | null } | null
  /** Account names by id. */
  names: ReadonlyMap<string, string>
  /** ms since epoch. */
  now: number
}

/** Uses the function that routes requests, so the result is what would happen. Changes nothing. */
export const explain = (
  pool: Chooser,
  { model: asked, key, settings, names, now, bySource, share }: Question,
): Explanation => {
  const model = key?.enforcedModel ?? asked
  const about = { model, apiKey: key && { id: key.id, name: key.name }, strategy: settings.routingStrategy }
  const refusal = key && getRefusal(key, model, now)
  if (refusal) return { ...about, outcome: 'refused', chosen: null, source: null, sentence: refusal, candidates: [] }
  const direct = bySource?.direct
  if (direct) return { ...about, ...servedBy(direct, 'serves this model'), candidates: [] }
  if (share?.error) {
    const sentence = `${share.error.message} A request that starts a new conversation would be rejected.`
    return { ...about, outcome: 'refused', chosen: null, source: null, sentence, candidates: [] }
  }
  const surface = getSurface(model)
  const selection = dryRun(pool, { model, key, settings })
  const chosenId = selection.kind === 'chosen' ? selection.id : null
  const getName = (id: string) => names.get(id) ?? null
  const isUsedUp = selection.kind === 'none' && selection.failure.kind === 'exhausted'
  const candidates = inOrder(selection.considered, chosenId).map((considered) => candidateView(considered, getName))
  if (isUsedUp && bySource?.overflow) return { ...about, ...servedBy(bySource.overflow, OVERFLOW), candidates }
  return {
    ...about,
    outcome: selection.kind,
    source: null,
    chosen: chosenId === null ? null : { accountId: chosenId, accountName: getName(chosenId) },
    sentence: `${sentenceFor(selection, model !== null && surface === 'turn' && !pool.offers(model) ? model : null)}${share?.isBorrowing ? BORROWS : ''}`,
    candidates,
  }
}

const BORROWS =
  ' The owner of this key has used up their share of the pool, so the request would borrow from idle users.'
const OVERFLOW = 'serves new conversations while every account is at its usage limit'

const servedBy = ({ source: { id, name } }: Choice, does: string) => ({
  outcome: 'source' as const,
  chosen: null,
  source: { sourceId: id, sourceName: name },
  sentence: `The request would go to the model source ${name}, which ${does}.`,
})

const getSurface = (model: string | null): 'turn' | 'image' | 'audio' =>
  isImageModel(model) ? 'image' : model === TRANSCRIPTION_MODEL ? 'audio' : 'turn'

/** Why the key itself rejects a request, as a sentence. Null if it does not. */
const getRefusal = (key: KeyPolicy, model: string | null, now: number): string | null => {
  if (!key.isActive) return 'This key is inactive or its owner is disabled, so the request would be rejected.'
  if (key.expiresAt !== null && key.expiresAt <= now) return 'This key has expired, so the request would be rejected.'
  if (model !== null && key.allowedModels && !key.allowedModels.has(model))
    return `This key is not allowed to use the model ${model}, so the request would be rejected.`
  const overLimit = getLimitError(key, model, now)
  return overLimit && `${overLimit.message} Until then requests are rejected.`
}

const sentenceFor = (selection: Selection, unlisted: string | null): string => {
  const aside = unlisted === null ? '' : ` No account lists ${unlisted}, so ChatGPT decides whether the model exists.`
  switch (selection.kind) {
    case 'chosen':
      return `The request would use this account.${aside}`
    case 'wait':
      return `Every available account is at its limit of parallel requests, so the request would wait for a free one.${aside}`
    case 'none':
      return selection.considered.length === 0
        ? 'There are no accounts yet, so the request would be rejected.'
        : `No account is available for this request, so it would be rejected.${aside}`
  }
}

/** The chosen one, then the available ones by reset and score, then the skipped ones. */
const inOrder = (considered: readonly Considered[], chosenId: string | null): Considered[] => {
  const place = ({ id, skipped }: Considered) => (id === chosenId ? 0 : skipped === null ? 1 : 2)
  const days = ({ resetDays }: Considered) => resetDays ?? Number.MAX_SAFE_INTEGER
  return considered.toSorted((a, b) => place(a) - place(b) || days(a) - days(b) || (b.score ?? 0) - (a.score ?? 0))
}

const candidateView = (
  { id, score, skipped, until, resetDays, egressReason, stayPercent, movePercent }: Considered,
  getName: (id: string) => string | null,
): CandidateView => ({
  accountId: id,
  accountName: getName(id),
  score,
  skipped,
  egressReason: egressReason ?? null,
  reason: skipped && skipText(skipped, egressReason),
  until: isoOrNull(until),
  resetDays: resetDays ?? null,
  stayPercent: stayPercent ?? null,
  movePercent: movePercent ?? null,
})
