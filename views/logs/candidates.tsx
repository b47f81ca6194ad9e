/** Why this account: each candidate with its score or the reason it was skipped. */
import type { FC } from 'hono/jsx'
import type { CandidateView } from '../../src/model/log/explain.ts'
import { CheckIcon } from '../ui/icons.tsx'
import { momentText } from '../ui/time.tsx'

interface CandidatesProps {
  candidates: readonly CandidateView[]
  chosenId: string | null
}

interface ListProps {
  candidates: readonly CandidateView[]
  chosen: CandidateView | null
}

/** Further ones are folded. */
const SHOWN = 8

export const Candidates: FC<CandidatesProps> = ({ candidates, chosenId }) => {
  if (candidates.length === 0) return <p class="small muted">There were no accounts to choose from.</p>
  const place = ({ accountId, skipped }: CandidateView) => (accountId === chosenId ? 0 : skipped === null ? 1 : 2)
  const days = ({ resetDays }: CandidateView) => resetDays ?? Number.MAX_SAFE_INTEGER
  const ordered = candidates.toSorted(
    (a, b) => place(a) - place(b) || days(a) - days(b) || (b.score ?? 0) - (a.score ?? 0),
  )
  const chosen = candidates.find(({ accountId }) => accountId === chosenId) ?? null
  const rest = ordered.slice(SHOWN)
  return (
    <>
      <List candidates={ordered.slice(0, SHOWN)} chosen={chosen} />
      {rest.length > 0 && (
        <details class="fold">
          <summary class="reveal">{rest.length} more</summary>
          <List candidates={rest} chosen={chosen} />
        </details>
      )}
    </>
  )
}

/** Whether `chosen` came first because its quota resets on an earlier day. An unknown reset counts as last. */
export const resetsLater = (candidate: CandidateView, chosen: CandidateView | null): boolean =>
  chosen !== null &&
  chosen.resetDays !== null &&
  candidate.skipped === null &&
  (candidate.resetDays === null || candidate.resetDays > chosen.resetDays)

const List: FC<ListProps> = ({ candidates, chosen }) => (
  <ul class="candidates">
    {candidates.map((candidate) => {
      const isChosen = candidate === chosen
      return (
        <li class={isChosen ? 'candidate is-chosen' : 'candidate'}>
          <span class="candidate-name">
            {isChosen && <CheckIcon />}
            {candidate.accountName ?? 'Deleted account'}
          </span>
          <span class="candidate-why muted">{whyText(candidate, chosen)}</span>
          <span class="candidate-score">{candidate.score === null ? '' : `score ${scoreText(candidate.score)}`}</span>
        </li>
      )
    })}
  </ul>
)

const whyText = (candidate: CandidateView, chosen: CandidateView | null): string =>
  [verdictText(candidate, chosen), priceText(candidate)].filter(Boolean).join('; ')

/** What a move and staying cost, when a move was weighed. */
const priceText = ({ stayPercent, movePercent }: CandidateView): string | null => {
  if (stayPercent !== null && stayPercent > 100) return 'the next request is larger than what is left'
  if (stayPercent !== null) return `staying uses ${percentText(stayPercent)} of its remaining quota`
  if (movePercent !== null && movePercent > 100) return 'the cached tokens alone are more than what is left'
  return movePercent === null ? null : `moving uses ${percentText(movePercent)} of its remaining quota`
}

const percentText = (percent: number): string => `${Number(percent.toPrecision(2))} %`

const verdictText = (candidate: CandidateView, chosen: CandidateView | null): string => {
  const { reason, until, resetDays } = candidate
  if (candidate === chosen) return 'chosen'
  if (resetsLater(candidate, chosen))
    return resetDays === null ? 'available; reset time unknown' : 'available; resets later'
  if (reason === null) return 'available'
  return until === null ? reason : `${reason} until ${momentText(until)}`
}

/** Four digits are enough to compare; larger numbers keep their whole part. */
const scoreText = (score: number): string =>
  Math.abs(score) >= 1000 ? Math.round(score).toLocaleString('en') : String(Number(score.toPrecision(4)))
