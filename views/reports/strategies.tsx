/** `/reports/strategies`: what each routing strategy would have done with the logged requests. */
import type { FC } from 'hono/jsx'
import type { MoveRuleResult, StrategyReport } from '../../src/model/replay/strategy-report.ts'
import type { Settings } from '../../src/settings/schema.ts'
import { choiceWords } from '../settings/words.ts'
import { countText, plural, shortCount } from '../ui/amounts.ts'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Form, NeedsScript, Outcome } from '../ui/form.tsx'
import { TableHead } from '../ui/table.tsx'

export interface StrategiesView {
  generatedAt: string
  asked: { days: number; seed: number }
  /** null: it was not started. */
  state: { kind: 'running'; share: number } | { kind: 'done'; value: StrategyReport } | { kind: 'failed' } | null
  strategy: Settings['routingStrategy']
  /** The user may choose the strategy. */
  isEditable: boolean
  version: number
  done: string | null
  problem: string | null
}

export const STRATEGIES_PATH = '/reports/strategies'

export const StrategiesPage: FC<StrategiesView> = (view) => (
  <div class="page" data-now={view.generatedAt}>
    <nav class="crumbs" aria-label="Breadcrumb">
      <a href="/reports">Reports</a>
    </nav>
    <header class="page-head">
      <h1>Compare strategies</h1>
    </header>
    <Outcome done={view.done} problem={view.problem} />
    <Start {...view} />
    {view.state?.kind === 'running' && <Progress {...view} share={view.state.share} />}
    {view.state?.kind === 'failed' && (
      <p class="note tone-bad" role="status">
        The comparison failed. Try again, or look for “replay” in the server’s log.
      </p>
    )}
    {view.state?.kind === 'done' && <Results {...view} report={view.state.value} />}
    {view.state?.kind === 'done' && view.state.value.requests > 0 && <MoveRules {...view.state.value.moveRules} />}
  </div>
)

const Start: FC<StrategiesView> = ({ asked, state }) => (
  <form class="card filter-card" method="get" action={STRATEGIES_PATH}>
    <p class="muted">
      See what each routing strategy would have done with your logged requests. Nothing is sent, and nothing changes.
    </p>
    <div class="filter-row">
      <label class="field">
        <span class="field-label">Days</span>
        <input type="number" name="days" value={asked.days} min={1} max={90} required />
      </label>
      <label class="field">
        <span class="field-label">Seed</span>
        <input type="number" name="seed" value={asked.seed} min={0} max={1_000_000} required />
      </label>
      <input type="hidden" name="run" value="1" />
      <div class="filter-actions">
        <Submit isPlain={state?.kind === 'done'}>Compare</Submit>
      </div>
    </div>
  </form>
)

/** Polls every second. Without scripts a link does it. */
const Progress: FC<StrategiesView & { share: number }> = ({ asked, share }) => {
  const href = `${STRATEGIES_PATH}?days=${asked.days}&seed=${asked.seed}&run=1`
  const percent = Math.floor(share * 100)
  return (
    <TextCard id="progress" title="Replaying requests">
      <div role="status" hx-get={href} hx-trigger="every 1s" hx-target="#main" hx-swap="innerMorph" data-poll>
        <progress class="wide" value={percent} max={100} aria-label="Progress" /> <span>{percent} %</span>
      </div>
      <p class="muted">This stops when you leave the page.</p>
      <noscript>
        <ButtonLink href={href}>Check progress</ButtonLink>
      </noscript>
    </TextCard>
  )
}

type Result = StrategyReport['strategies'][number]

const Results: FC<StrategiesView & { report: StrategyReport }> = ({ report, strategy, isEditable, version }) => (
  <Card id="strategies" title="Results" count={plural(report.requests, 'request')}>
    <div class="card-part">
      {!report.sufficient && (
        <p class="note tone-wait" role="status">
          {report.requests === 0
            ? 'There are no requests in the log yet, so there is nothing to compare.'
            : `The log covers less than a week (${plural(report.coveredDays, 'day')}), so the result may not be typical.`}
        </p>
      )}
      <NeedsScript />
    </div>
    {report.requests > 0 && (
      <div class="scroll-x" tabindex={0}>
        <table class="figures strategies">
          <TableHead texts={['Strategy']} numbers={['Rejected', 'Moved conversations', 'Weekly quota unused']}>
            <th scope="col">
              <span class="sr">Action</span>
            </th>
          </TableHead>
          <tbody>
            {report.strategies.map((result) => (
              <Row result={result} isCurrent={result.name === strategy} isEditable={isEditable} version={version} />
            ))}
          </tbody>
        </table>
      </div>
    )}
    <p class="card-part small muted">
      {report.isMeasured
        ? 'How much quota a request uses was measured with the usage that ChatGPT reported for your accounts.'
        : 'How much quota a request uses is assumed, because ChatGPT has not reported enough usage yet.'}{' '}
      Below each average are the lowest and the highest of 20 runs.
    </p>
  </Card>
)

interface RowProps {
  result: Result
  isCurrent: boolean
  isEditable: boolean
  version: number
}

const Row: FC<RowProps> = ({ result, isCurrent, isEditable, version }) => {
  const { name, rejected, moves, unusedPercent, spread } = result
  const { label } = choiceWords('routingStrategy', name)
  return (
    <tr>
      <th scope="row">
        {label} {isCurrent && <span class="tag">in use</span>}
      </th>
      <Figure value={rejected} range={spread.rejected} />
      <Figure value={moves} range={spread.moves} />
      <Figure value={unusedPercent} range={spread.unusedPercent} unit=" %" />
      <td class="number">
        {isEditable && !isCurrent && (
          <Form name={`use-${name}`} method="patch" action="/api/settings?section=routing">
            <input type="hidden" name="expectedVersion" value={version} />
            <input type="hidden" name="routingStrategy" value={name} />
            <Submit isPlain>
              Use this strategy<span class="sr">: {label}</span>
            </Submit>
          </Form>
        )}
      </td>
    </tr>
  )
}

/** Both rules for moves, with the strategy in use. */
const MoveRules: FC<StrategyReport['moveRules']> = ({ priced, fixed }) => (
  <Card id="move-rules" title="Moves with the strategy in use">
    <div class="scroll-x" tabindex={0}>
      <table class="figures strategies">
        <TableHead
          texts={['A conversation moves']}
          numbers={['Moved conversations', 'Cached tokens lost', 'Rejected']}
        />
        <tbody>
          <Rule name="if it costs less than staying" isCurrent result={priced} />
          <Rule name="always at 95 % of the 5-hour window" result={fixed} />
        </tbody>
      </table>
    </div>
  </Card>
)

const Rule: FC<{ name: string; isCurrent?: boolean; result: MoveRuleResult }> = ({ name, isCurrent, result }) => (
  <tr>
    <th scope="row">
      {name} {isCurrent && <span class="tag">in use</span>}
    </th>
    <Figure value={result.moves} range={null} />
    <td class="number">{shortCount(Math.round(result.movedTokens))}</td>
    <Figure value={result.rejected} range={null} />
  </tr>
)

interface FigureProps {
  value: number | null
  range: readonly [number, number] | null
  unit?: string
}

const Figure: FC<FigureProps> = ({ value, range, unit = '' }) => (
  <td class="number">
    {value === null ? '–' : `${amountText(value)}${unit}`}
    {range && range[0] !== range[1] && (
      <div class="small muted">
        {amountText(range[0])} to {amountText(range[1])}
      </div>
    )}
  </td>
)

const amountText = (value: number): string =>
  value < 100 ? String(Math.round(value * 10) / 10) : countText(Math.round(value))
