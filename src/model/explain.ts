/** Why an account was chosen and the others were not: for a logged request, and for one that might come now. */

import { isoOrNull } from '../lib/iso.ts'
import type { Considered, Selection } from '../proxy/select.ts'
import type { Settings } from '../settings/schema.ts'
import type { KeyPolicy } from './key-ring.ts'
import { refusalByLimit } from './reservations.ts'
import { skipText } from './skip-reasons.ts'

/** An account that a selection looked at. */
export interface CandidateView {
  accountId: string
  /** null: it is gone. */
  accountName: string | null
  /** What the strategy ranked it by, in the strategy's own unit; null: it was not ranked. */
  score: number | null
  /** null: it was chosen, or could have been. */
  skipped: string | null
  /** `skipped` in words. */
  reason: string | null
  /** ISO 8601: when the reason ends, where that is known. */
  until: string | null
  /** Whole days to its reset, where accounts that reset sooner were asked first; null: not so, or not known. */
  resetDays: number | null
}

/** Which account a request would get now. */
export interface Explanation {
  /** The model that would be asked for: the key's, where it enforces one. null: any. */
  model: string | null
  apiKey: { id: string; name: string } | null
  strategy: Settings['routingStrategy']
  /** `refused`: the key itself turns the request away. */
  outcome: 'chosen' | 'wait' | 'none' | 'refused'
  chosen: { accountId: string; accountName: string | null } | null
  /** The outcome in a sentence. */
  sentence: string
  /** The chosen one first, then the others that could serve by their score, then the rest. */
  candidates: CandidateView[]
}

/** What of the pool an explanation needs: the function that chooses. */
interface Chooser {
  offers(model: string | null): boolean
  explain(needs: {
    model: string | null
    tried: ReadonlySet<string>
    scope: ReadonlySet<string> | null
    owner: null
    restricted: false
    streamCap: number
  }): Selection
}

interface Question {
  model: string | null
  key: KeyPolicy | null
  settings: Pick<Settings, 'routingStrategy' | 'proxyAccountStreamLimit'>
  /** Of every account, by id. */
  names: ReadonlyMap<string, string>
  /** ms since epoch. */
  now: number
}

/** Asks the function that leases accounts to turns, so the answer cannot differ from what would happen. Changes nothing. */
export const explain = (pool: Chooser, { model: asked, key, settings, names, now }: Question): Explanation => {
  const model = key?.enforcedModel ?? asked
  const about = { model, apiKey: key && { id: key.id, name: key.name }, strategy: settings.routingStrategy }
  const refusal = key && refusalOf(key, model, now)
  if (refusal) return { ...about, outcome: 'refused', chosen: null, sentence: refusal, candidates: [] }
  const selection = pool.explain({
    model,
    tried: new Set(),
    scope: key?.scope ?? null,
    owner: null,
    restricted: false,
    streamCap: settings.proxyAccountStreamLimit,
  })
  const chosenId = selection.kind === 'chosen' ? selection.id : null
  const nameOf = (id: string) => names.get(id) ?? null
  return {
    ...about,
    outcome: selection.kind,
    chosen: chosenId === null ? null : { accountId: chosenId, accountName: nameOf(chosenId) },
    sentence: sentenceFor(selection, model !== null && !pool.offers(model) ? model : null),
    candidates: inOrder(selection.considered, chosenId).map((considered) => candidateView(considered, nameOf)),
  }
}

const refusalOf = (key: KeyPolicy, model: string | null, now: number): string | null => {
  if (!key.isActive) return 'The key or its owner is disabled. Requests with this key are rejected.'
  if (key.expiresAt !== null && key.expiresAt <= now) return 'The key has expired. Requests with it are rejected.'
  if (model !== null && key.allowedModels && !key.allowedModels.has(model))
    return `This key does not allow the model ${model}. The request would be rejected.`
  const overLimit = refusalByLimit(key, model, now)
  return overLimit && `${overLimit.message} Until then requests with this key are rejected.`
}

const sentenceFor = (selection: Selection, unlisted: string | null): string => {
  const aside = unlisted === null ? '' : ` No account lists the model ${unlisted}, so ChatGPT may reject it.`
  switch (selection.kind) {
    case 'chosen':
      return `The request would use this account.${aside}`
    case 'wait':
      return `Every available account is at its limit of parallel requests. The request would wait for a free one.${aside}`
    case 'none':
      return selection.considered.length === 0
        ? 'No account has been added yet. The request would be rejected.'
        : `No account is available for this request. It would be rejected.${aside}`
  }
}

/** The chosen one, those ranked beside it by their resets and from the best score down as they came, those skipped. */
const inOrder = (considered: readonly Considered[], chosenId: string | null): Considered[] => {
  const place = ({ id, skipped }: Considered) => (id === chosenId ? 0 : skipped === null ? 1 : 2)
  const days = ({ resetDays }: Considered) => resetDays ?? Number.MAX_SAFE_INTEGER
  return considered.toSorted((a, b) => place(a) - place(b) || days(a) - days(b) || (b.score ?? 0) - (a.score ?? 0))
}

const candidateView = (
  { id, score, skipped, until, resetDays }: Considered,
  nameOf: (id: string) => string | null,
): CandidateView => ({
  accountId: id,
  accountName: nameOf(id),
  score,
  skipped,
  reason: skipped && skipText(skipped),
  until: isoOrNull(until),
  resetDays: resetDays ?? null,
})
