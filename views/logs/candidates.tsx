/** Why this account: each candidate with its score, or with what it was skipped for. */
import type { FC } from 'hono/jsx'
import type { CandidateView } from '../../src/model/explain.ts'
import { CheckIcon } from '../ui/icons.tsx'
import { momentText } from './words.ts'

interface CandidatesProps {
  candidates: readonly CandidateView[]
  chosenId: string | null
}

/** More than these are folded. */
const SHOWN = 8

export const Candidates: FC<CandidatesProps> = ({ candidates, chosenId }) => {
  if (candidates.length === 0) return <p class="small muted">There was no account to choose from.</p>
  const place = ({ accountId, skipped }: CandidateView) => (accountId === chosenId ? 0 : skipped === null ? 1 : 2)
  const ordered = candidates.toSorted((a, b) => place(a) - place(b) || (b.score ?? 0) - (a.score ?? 0))
  const rest = ordered.slice(SHOWN)
  return (
    <>
      <List candidates={ordered.slice(0, SHOWN)} chosenId={chosenId} />
      {rest.length > 0 && (
        <details class="fold">
          <summary class="reveal">{rest.length} more</summary>
          <List candidates={rest} chosenId={chosenId} />
        </details>
      )}
    </>
  )
}

const List: FC<CandidatesProps> = ({ candidates, chosenId }) => (
  <ul class="candidates">
    {candidates.map((candidate) => {
      const isChosen = candidate.accountId === chosenId
      return (
        <li class={isChosen ? 'candidate is-chosen' : 'candidate'}>
          <span class="candidate-name" title={candidate.accountName ?? undefined}>
            {isChosen && <CheckIcon />}
            {candidate.accountName ?? 'a deleted account'}
          </span>
          <span class="candidate-why muted">{whyText(candidate, isChosen)}</span>
          <span class="candidate-score">{candidate.score === null ? '' : `score ${scoreText(candidate.score)}`}</span>
        </li>
      )
    })}
  </ul>
)

const whyText = ({ reason, until }: CandidateView, isChosen: boolean): string => {
  if (isChosen) return 'chosen'
  if (reason === null) return 'could have served'
  return until === null ? reason : `${reason} until ${momentText(until)} UTC`
}

/** Four digits say enough to compare within one choice; larger numbers keep their whole part. */
const scoreText = (score: number): string =>
  Math.abs(score) >= 1000 ? Math.round(score).toLocaleString('en') : String(Number(score.toPrecision(4)))
