/** `/logs/explain`, the routing simulator: which account a request would get now. */
import type { FC } from 'hono/jsx'
import type { ExplainView } from '../../src/admin/explain.ts'
import type { CandidateView, Explanation } from '../../src/model/explain.ts'
import type { Tone } from '../ui/badge.tsx'
import { Filter, FilterActions, optionsOf } from '../ui/select.tsx'
import { momentText } from '../ui/time.tsx'
import { Candidates, resetsLater } from './candidates.tsx'
import { LogHead } from './head.tsx'
import { STRATEGY_NAMES } from './words.ts'

export const ExplainPage: FC<ExplainView> = ({ asked, options, explanation, generatedAt }) => (
  <div class="page" data-now={generatedAt}>
    <LogHead current="/logs/explain" mayExplain />
    <form class="card filter-card" method="get" action="/logs/explain">
      <p class="muted">See which account a request would use right now. Nothing is sent.</p>
      <div class="filter-row">
        <label class="field">
          <span class="field-label">Model</span>
          <input
            type="text"
            name="model"
            value={asked.model}
            list="models"
            placeholder="Any"
            maxlength={200}
            autocapitalize="none"
            spellcheck={false}
          />
          <datalist id="models">
            {options.models.map((model) => (
              <option value={model} />
            ))}
          </datalist>
        </label>
        {options.keys && <Filter label="Key" name="key" chosen={asked.key} options={optionsOf(options.keys)} />}
        <FilterActions label="Simulate" />
      </div>
    </form>
    {explanation && <Answer {...explanation} at={generatedAt} />}
  </div>
)

const TONES: Record<Explanation['outcome'], [title: string, tone: Tone]> = {
  chosen: ['', 'good'],
  wait: ['The request would wait', 'wait'],
  none: ['No account available', 'bad'],
  refused: ['Rejected', 'bad'],
}

const Answer: FC<Explanation & { at: string }> = ({ outcome, chosen, sentence, strategy, candidates, model, at }) => {
  const [title, tone] = TONES[outcome]
  return (
    <section class="card" id="explanation" aria-labelledby="explanation-title">
      <div class="card-part">
        <h2 class="sr" id="explanation-title">
          Result
        </h2>
        <p class={`health tone-${tone}`}>
          <span class="dot" aria-hidden="true" />
          <strong>{chosen ? (chosen.accountName ?? chosen.accountId) : title}</strong>
        </p>
        <p>{sentence}</p>
        <p class="small muted">
          {model && (
            <>
              Model <code>{model}</code> ·{' '}
            </>
          )}
          Strategy: {STRATEGY_NAMES[strategy]}
          {isDrawn({ strategy, candidates }) && ' (a weighted draw, so the next request may use another account)'} ·{' '}
          {momentText(at)} UTC
        </p>
      </div>
      {outcome !== 'refused' && (
        <div class="card-part">
          <h3>Candidates</h3>
          <Candidates candidates={candidates} chosenId={chosen?.accountId ?? null} />
        </div>
      )}
    </section>
  )
}

const DRAWN: readonly Explanation['strategy'][] = ['capacity_weighted', 'relative_availability']

/** Whether it was drawn by chance: another account could have won. One that resets later or has nothing left could not. */
const isDrawn = ({ strategy, candidates }: Pick<Explanation, 'strategy' | 'candidates'>): boolean => {
  const [chosen = null, ...others] = candidates
  const mayWin = (one: CandidateView) => one.skipped === null && (one.score ?? 0) > 0 && !resetsLater(one, chosen)
  return DRAWN.includes(strategy) && others.some(mayWin)
}
