/**
 * `/reports`: usage in a range of days: totals next to the previous period, a chart, and tables by model, key and
 * account.
 */
import type { FC } from 'hono/jsx'
import type { ReportBars } from '../../src/model/reports/report-bars.ts'
import type { Sums } from '../../src/model/reports/report-sums.ts'
import type { Report, ReportQuery } from '../../src/model/reports/reports.ts'
import type { Logs } from '../logs/page.tsx'
import { countText, dollarText, plural, shortCount } from '../ui/amounts.ts'
import { ButtonLink } from '../ui/button.tsx'
import { TextCard } from '../ui/card.tsx'
import { Filter, FilterActions, getOptions, type Option, plainOptions } from '../ui/select.tsx'
import { getCost, tokens, unpricedText } from './amounts.ts'
import { ReportChart } from './chart.tsx'
import { DayFigures } from './days.tsx'
import { hrefWith } from './links.ts'
import { PlannedStarts, type PlannerCard } from './planner.tsx'
import { Shares } from './shares.tsx'

export type Preset = 'today' | '7d' | '30d' | '90d' | 'month'

export interface ReportView extends Report {
  generatedAt: string
  /** null: dates were chosen individually. */
  range: Preset | null
  chart: ReportBars
  /** false: this user sees only their own keys. */
  showsAccounts: boolean
  asked: Pick<ReportQuery, 'account_id' | 'api_key_id' | 'source_id' | 'model' | 'client'>
  /** This page's query without empty parameters, for its links to change. */
  params: [name: string, value: string][]
  /** An unknown zone in the URL. */
  unknownZone: string | null
  options: Logs['options']
  /** null: hidden from the user. */
  planner: PlannerCard | null
  /** The same report as files. */
  links: { csv: string; json: string }
}

export const ReportPage: FC<ReportView> = (report) => (
  <div class="page" data-now={report.generatedAt}>
    <header class="page-head">
      <h1>Reports</h1>
      <Presets {...report} />
      {report.showsAccounts && (
        <ButtonLink class="button button-plain card-action" href="/reports/strategies">
          Compare strategies
        </ButtonLink>
      )}
    </header>
    {report.unknownZone && (
      <p class="note tone-wait" role="status">
        There is no time zone “{report.unknownZone}”. Days are shown in {report.timezone}.
      </p>
    )}
    <Range {...report} />
    <Summary {...report} />
    <ReportChart {...report} />
    <div class="shares">
      <Shares {...report} id="models" title="By model" shares={report.byModel} filter="model" none="no model" />
      {report.byKey && (
        <Shares
          {...report}
          id="keys"
          title="By key"
          shares={report.byKey}
          filter="api_key_id"
          none="no key"
          gone="deleted key"
        />
      )}
      {report.showsAccounts && (
        <Shares
          {...report}
          id="accounts"
          title="By account"
          shares={report.byAccount}
          filter="account_id"
          none="no account"
          gone="deleted account"
        />
      )}
      <Shares
        {...report}
        id="clients"
        title="By client"
        shares={report.byClient}
        filter="client"
        none="unknown client"
      />
      {report.bySource.length > 0 && (
        <Shares
          {...report}
          id="by-source"
          title="By source"
          shares={report.bySource}
          filter="source_id"
          none="ChatGPT accounts"
          gone="deleted source"
        />
      )}
    </div>
    <Moves {...report.summary} />
    <DayFigures {...report} />
    {report.planner && <PlannedStarts {...report.planner} />}
    <p class="small muted">
      Costs are estimates at list prices.
      {report.summary.unpriced > 0 && ' A + means that requests for models with an unknown price are not included.'}{' '}
      Reports use hourly totals, which are kept when the log is deleted.
    </p>
  </div>
)

const PRESETS: Record<Preset, string> = {
  today: 'Today',
  '7d': '7 days',
  '30d': '30 days',
  '90d': '90 days',
  month: 'This month',
}

const Presets: FC<ReportView> = ({ range, params }) => (
  <nav class="periods" aria-label="Range">
    {(Object.keys(PRESETS) as Preset[]).map(
      (
        preset, // as: a record of all presets
      ) => (
        <a
          href={hrefWith(params, { range: preset, start_date: null, end_date: null })}
          aria-current={preset === range ? 'true' : undefined}
        >
          {PRESETS[preset]}
        </a>
      ),
    )}
  </nav>
)

const Range: FC<ReportView> = (report) => {
  const { startDate, endDate, timezone, asked, options, links, chart, params, byClient, showsAccounts } = report
  const clients = byClient.flatMap(({ id, name }): Option[] => (id === null ? [] : [[id, name ?? id]]))
  const isNarrowed = Object.values(asked).some(({ length }) => length > 0)
  const clear = isNarrowed
    ? hrefWith(params, { account_id: null, api_key_id: null, source_id: null, model: null, client: null })
    : null
  return (
    <form class="card filter-card" method="get" action="/reports">
      <div class="filter-row">
        <label class="field">
          <span class="field-label">From</span>
          <input type="date" name="start_date" value={startDate} />
        </label>
        <label class="field">
          <span class="field-label">To</span>
          <input type="date" name="end_date" value={endDate} />
        </label>
        {showsAccounts && (
          <Filter
            label="Account"
            name="account_id"
            chosen={asked.account_id[0]}
            options={getOptions(options.accounts)}
          />
        )}
        {options.keys && (
          <Filter label="Key" name="api_key_id" chosen={asked.api_key_id[0]} options={getOptions(options.keys)} />
        )}
        <Filter label="Model" name="model" chosen={asked.model[0]} options={plainOptions(options.models)} />
        <Filter label="Client" name="client" chosen={asked.client[0]} options={clients} />
        {asked.source_id.map((id) => (
          <input type="hidden" name="source_id" value={id} />
        ))}
        <input type="hidden" name="timezone" value={timezone} data-zone />
        <input type="hidden" name="measure" value={chart.measure} />
        <input type="hidden" name="stack" value={chart.stack} />
        <FilterActions label="Apply" clear={clear} />
      </div>
      <p class="small">
        <a href={links.csv}>Download CSV</a> · <a href={links.json}>Download JSON</a>
        <span class="muted"> · days in {timezone}</span>
      </p>
    </form>
  )
}

const Summary: FC<ReportView> = ({ summary, comparison, chart }) => {
  const { canCompare, previous } = comparison
  const change = (pick: (sums: Sums) => number) => (canCompare ? changeText(pick(summary), pick(previous)) : null)
  return (
    <dl class="report-tiles">
      <Tile
        name="Cost"
        change={change(({ costUsd }) => costUsd)}
        note={unpricedText(summary)}
        value={getCost(summary)}
      />
      <Tile name="Spent this month" note={paceText(chart.month)} value={dollarText(chart.month.spentUsd)} />
      <Tile name="Requests" change={change(({ requests }) => requests)} value={countText(summary.requests)} />
      <Tile name="Tokens" change={change(tokens)} note={cachedText(summary)} value={shortCount(tokens(summary))} />
      <Tile
        name="Error rate"
        note={`${plural(summary.errors, 'error')}, ${countText(summary.cancelled)} cancelled by the client`}
        value={percentText(summary.errors, summary.requests)}
      />
      <Tile
        name="Daily average"
        note={plural(fewDigits(summary.avgRequestsPerDay), 'request')}
        value={getCost({ ...summary, costUsd: summary.avgCostPerDayUsd })}
      />
    </dl>
  )
}

/** What it cost to move conversations between accounts. */
const Moves: FC<Sums> = ({ moves, avoidableMoves, movedInputTokens }) =>
  moves > 0 && (
    <TextCard id="moves" title="Moved conversations" help="moves">
      <p>
        {plural(moves, 'move')} cost {shortCount(movedInputTokens)} uncached tokens, {countText(avoidableMoves)}{' '}
        {avoidableMoves === 1 ? 'was' : 'were'} avoidable.
      </p>
    </TextCard>
  )

const paceText = ({ paceUsd, spentUsd }: ReportView['chart']['month']): string | null =>
  paceUsd === null || spentUsd === 0 ? null : `on pace for ${dollarText(paceUsd)}`

/** Decimals only for small numbers, so that a few requests are not shown as zero. */
const fewDigits = (mean: number): number => Number(mean < 1 ? mean.toPrecision(1) : mean.toFixed(mean < 10 ? 1 : 0))

const Tile: FC<{ name: string; value: string; change?: string | null; note?: string | null }> = (tile) => (
  <div class="card report-tile">
    <dt>{tile.name}</dt>
    <dd class="report-value">{tile.value}</dd>
    {(tile.change ?? tile.note) && <dd class="small muted">{[tile.change, tile.note].filter(Boolean).join(' · ')}</dd>}
  </div>
)

const cachedText = ({ inputTokens, cachedInputTokens }: Sums): string | null =>
  inputTokens === 0 ? null : `${percentText(cachedInputTokens, inputTokens)} of input cached`

const percentText = (part: number, whole: number): string =>
  whole === 0 ? '–' : `${Number(((part / whole) * 100).toFixed(part / whole < 0.1 ? 1 : 0))} %`

/** More than that says only that there was hardly anything before, as in the first days. */
const MAX_PERCENT = 1000

const changeText = (now: number, before: number): string | null => {
  if (before === 0) return null
  const percent = Math.round((now / before - 1) * 100)
  if (percent === 0) return 'no change'
  if (percent > MAX_PERCENT) return null
  return `${percent > 0 ? '▲' : '▼'} ${countText(Math.abs(percent))} % vs previous period`
}
