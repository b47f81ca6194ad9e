/** `/accounts/simulator`: which account a request would use now, decided by the function that routes requests. */
import type { FC } from 'hono/jsx'
import type { CandidateView, Explanation } from '../../src/model/log/explain.ts'
import { Candidates, resetsLater } from '../logs/candidates.tsx'
import type { Logs } from '../logs/page.tsx'
import { STRATEGY_NAMES } from '../logs/words.ts'
import type { Tone } from '../ui/badge.tsx'
import { Filter, FilterActions, getOptions } from '../ui/select.tsx'
import { Moment } from '../ui/time.tsx'
import { SIMULATOR } from './links.ts'

export interface ExplainView {
  generatedAt: string
  asked: { model: string; key: string }
  options: Logs['options']
  /** null: the form was not submitted yet. */
  explanation: Explanation | null
}

export const SimulatorPage: FC<ExplainView> = ({ asked, options, explanation, generatedAt }) => (
  <div class="page" data-now={generatedAt}>
    <nav class="crumbs" aria-label="Breadcrumb">
      <a href="/accounts">Accounts</a>
    </nav>
    <header class="page-head">
      <h1>Routing simulator</h1>
    </header>
    <form class="card filter-card" method="get" action={SIMULATOR}>
      <p class="muted">See which account a request would use right now. Nothing is sent, and nothing changes.</p>
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
        {options.keys && <Filter label="Key" name="key" chosen={asked.key} options={getOptions(options.keys)} />}
        <FilterActions label="Simulate" />
      </div>
    </form>
    {explanation && <Answer {...explanation} at={generatedAt} />}
  </div>
)

const TONES: Record<Explanation['outcome'], [title: string, tone: Tone]> = {
  chosen: ['', 'good'],
  source: ['', 'good'],
  wait: ['The request would wait', 'wait'],
  none: ['No account available', 'bad'],
  refused: ['Request rejected', 'bad'],
}

const Answer: FC<Explanation & { at: string }> = ({
  outcome,
  chosen,
  source,
  sentence,
  strategy,
  candidates,
  model,
  at,
}) => {
  const [title, tone] = TONES[outcome]
  return (
    <section class="card" id="explanation" aria-labelledby="explanation-title">
      <div class="card-part">
        <h2 class="sr" id="explanation-title">
          Result
        </h2>
        <p class={`health tone-${tone}`}>
          <span class="dot" aria-hidden="true" />
          <strong>{chosen ? (chosen.accountName ?? chosen.accountId) : (source?.sourceName ?? title)}</strong>
        </p>
        <p>{sentence}</p>
        <p class="small muted">
          {model && (
            <>
              Model <code>{model}</code> ·{' '}
            </>
          )}
          Strategy: {STRATEGY_NAMES[strategy]}
          {isDrawn({ strategy, candidates }) && ' (weighted random, so the result can vary)'} · <Moment at={at} />
        </p>
      </div>
      {outcome !== 'refused' && candidates.length > 0 && (
        <div class="card-part">
          <h3>Candidates</h3>
          <Candidates candidates={candidates} chosenId={chosen?.accountId ?? null} />
        </div>
      )}
    </section>
  )
}

const DRAWN: readonly Explanation['strategy'][] = ['capacity_weighted', 'relative_availability']

/** Whether chance is involved: another candidate could win that neither resets later nor is used up. */
const isDrawn = ({ strategy, candidates }: Pick<Explanation, 'strategy' | 'candidates'>): boolean => {
  const [chosen = null, ...others] = candidates
  const mayWin = (one: CandidateView) => one.skipped === null && (one.score ?? 0) > 0 && !resetsLater(one, chosen)
  return DRAWN.includes(strategy) && others.some(mayWin)
}
