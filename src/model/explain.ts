/** Why an account was chosen and the others were not, in words: for a request of the log, and for one that might come now. */

import { isoOrNull } from '../lib/iso.ts'
import type { Considered, Selection, SkipReason } from '../proxy/select.ts'
import type { Settings } from '../settings/schema.ts'
import type { KeyPolicy } from './key-ring.ts'
import { refusalByLimit } from './reservations.ts'

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

const SKIPPED: Record<SkipReason, string> = {
  tried: 'had already failed for this request',
  out_of_scope: 'not among the accounts of the key',
  paused: 'paused',
  needs_sign_in: 'needs a new sign-in',
  deactivated: 'deactivated by the service',
  rate_limited: 'rate limited',
  quota_exceeded: 'allowance used up',
  spend_cap_reached: 'spend cap reached',
  credits_depleted: 'workspace credits used up',
  not_allowed: 'not allowed to send requests, says its usage report',
  paid_credits_off: 'included quota used up; paid credits are not used',
  model_limited: 'its allowance of the model is used up',
  cooling_down: 'cooling down after errors',
  model_not_supported: 'does not offer the model',
  not_authorized: 'not authorised for security work',
  at_cap: 'at its limit of parallel streams',
  not_owner: 'the conversation belongs to another account',
  other_retried: 'the account asked before was tried once more first',
  paid_credits_last: 'included quota used up; paid credits are used last',
  lower_tier: 'only asked when no healthier account is left',
  policy_class: 'held back by its routing policy or the strategy',
}

/** What a request is told to have been skipped for; a word nobody knows any more stands for itself. */
export const skipText = (reason: string): string => (SKIPPED as Record<string, string>)[reason] ?? reason // as: older rows may hold other words

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
  if (!key.isActive) return 'The key is switched off, or its owner is disabled: every request with it is refused.'
  if (key.expiresAt !== null && key.expiresAt <= now) return 'The key has expired: every request with it is refused.'
  if (model !== null && key.allowedModels && !key.allowedModels.has(model))
    return `The key may not use the model ${model}: such a request is refused.`
  const overLimit = refusalByLimit(key, model, now)
  return overLimit && `${overLimit.message} Until then such a request is refused.`
}

const sentenceFor = (selection: Selection, unlisted: string | null): string => {
  const aside =
    unlisted === null
      ? ''
      : ` No account lists ${unlisted}, so whether there is such a model is for the upstream to say.`
  switch (selection.kind) {
    case 'chosen':
      return `A request would be served now.${aside}`
    case 'wait':
      return `Every account that could serve is at its limit of parallel streams: a request would wait for a free one.${aside}`
    case 'none':
      return selection.considered.length === 0
        ? 'No account has been added yet: a request would be refused.'
        : `No account can serve this now: a request would be refused.${aside}`
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
