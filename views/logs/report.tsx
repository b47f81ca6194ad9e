/** `/reports`: what was used in a range of days: sums beside the days before, a chart, and shares. */
import type { Child, FC } from 'hono/jsx'
import type { ReportView } from '../../src/admin/reports.ts'
import type { ReportDay, ReportShare, Sums } from '../../src/model/reports.ts'
import { Choices } from './filters.tsx'
import { LogHead } from './head.tsx'
import { countText, momentText, shortCount, usdText } from './words.ts'

export const ReportPage: FC<ReportView> = (report) => (
  <div class="page" data-now={report.generatedAt}>
    <LogHead current="/reports" mayExplain />
    <Range {...report} />
    <Summary {...report} />
    <Days {...report} />
    <div class="shares">
      <Shares title="By model" shares={report.byModel} none="no model" />
      {report.byKey && <Shares title="By key" shares={report.byKey} none="no key" gone="a deleted key" />}
      <Shares title="By account" shares={report.byAccount} none="no account" gone="a deleted account" />
    </div>
    <p class="small muted">From hourly sums, which are kept for ever. {momentText(report.generatedAt)} UTC.</p>
  </div>
)

const Range: FC<ReportView> = ({ startDate, endDate, timezone, asked, options, links }) => (
  <form class="card log-filters" method="get" action="/reports">
    <div class="filter-row">
      <label class="field">
        <span class="field-label">From</span>
        <input type="date" name="start_date" value={startDate} />
      </label>
      <label class="field">
        <span class="field-label">To</span>
        <input type="date" name="end_date" value={endDate} />
      </label>
      <Choices label="Account" name="account_id" chosen={asked.account_id} choices={options.accounts} />
      {options.keys && <Choices label="Key" name="api_key_id" chosen={asked.api_key_id} choices={options.keys} />}
      <Choices
        label="Model"
        name="model"
        chosen={asked.model}
        choices={options.models.map((name) => ({ id: name, name }))}
      />
      <input type="hidden" name="timezone" value={timezone} data-zone />
      <div class="filter-actions">
        <button class="button" type="submit">
          Show
        </button>
      </div>
    </div>
    <p class="small">
      <a href={links.csv}>Download CSV</a> · <a href={links.json}>Download JSON</a>
      <span class="muted"> · days in {timezone}</span>
    </p>
  </form>
)

const Summary: FC<ReportView> = ({ summary, comparison }) => {
  const { canCompare, previous } = comparison
  const change = (pick: (sums: Sums) => number) => (canCompare ? changeText(pick(summary), pick(previous)) : null)
  const tokens = ({ inputTokens, outputTokens }: Sums) => inputTokens + outputTokens
  return (
    <dl class="report-tiles">
      <Tile name="Cost" change={change(({ costUsd }) => costUsd)}>
        {usdText(summary.costUsd)}
      </Tile>
      <Tile name="Requests" change={change(({ requests }) => requests)}>
        {countText(summary.requests)}
      </Tile>
      <Tile name="Tokens" change={change(tokens)} note={cachedText(summary)}>
        {shortCount(tokens(summary))}
      </Tile>
      <Tile name="Failed" note={`${countText(summary.cancelled)} left by the client`}>
        {percentText(summary.errors, summary.requests)}
      </Tile>
      <Tile name="A day" note={`${countText(Math.round(summary.avgRequestsPerDay))} requests`}>
        {usdText(summary.avgCostPerDayUsd)}
      </Tile>
      <Tile name="Accounts used">{countText(summary.activeAccounts)}</Tile>
    </dl>
  )
}

const Tile: FC<{ name: string; change?: string | null; note?: string | null; children?: Child }> = (tile) => (
  <div class="card report-tile">
    <dt>{tile.name}</dt>
    <dd class="report-value">{tile.children}</dd>
    {(tile.change ?? tile.note) && <dd class="small muted">{[tile.change, tile.note].filter(Boolean).join(' · ')}</dd>}
  </div>
)

const cachedText = ({ inputTokens, cachedInputTokens }: Sums): string | null =>
  inputTokens === 0 ? null : `${percentText(cachedInputTokens, inputTokens)} of input cached`

const percentText = (part: number, whole: number): string =>
  whole === 0 ? '–' : `${Number(((part / whole) * 100).toFixed(part / whole < 0.1 ? 1 : 0))} %`

const changeText = (now: number, before: number): string | null => {
  if (before === 0) return null
  const percent = Math.round((now / before - 1) * 100)
  return percent === 0 ? 'as before' : `${percent > 0 ? '+' : '−'}${countText(Math.abs(percent))} % to the days before`
}

/** A year of days is still told apart. */
const CHART_WIDTH = 1000
const CHART_HEIGHT = 140
const MAX_BAR_WIDTH = 60

const Days: FC<ReportView> = ({ daily }) => {
  const most = Math.max(...daily.map(({ costUsd }) => costUsd), 0)
  const step = CHART_WIDTH / daily.length
  const barWidth = Math.min(step * 0.76, MAX_BAR_WIDTH)
  return (
    <section class="card" aria-labelledby="days-title">
      <header class="card-head">
        <h2 id="days-title">Cost a day</h2>
        <span class="count">{most === 0 ? 'nothing was used' : `up to ${usdText(most)}`}</span>
      </header>
      <div class="card-part">
        <svg
          class="days-chart"
          viewBox={`0 0 ${CHART_WIDTH} ${CHART_HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Cost of each of ${daily.length} days; the table below has the same figures.`}
        >
          {daily.map((day, place) => (
            <g>
              <title>{dayText(day)}</title>
              <rect class="days-hit" x={units(place * step)} width={units(step)} height={CHART_HEIGHT} />
              <rect
                class="days-bar"
                x={units((place + 0.5) * step - barWidth / 2)}
                width={units(barWidth)}
                y={units(CHART_HEIGHT - heightOf(day.costUsd, most))}
                height={units(heightOf(day.costUsd, most))}
              />
            </g>
          ))}
        </svg>
        <p class="days-ends small muted">
          <span>{daily[0]?.date}</span>
          <span>{daily.at(-1)?.date}</span>
        </p>
        <details class="fold">
          <summary class="reveal">As a table</summary>
          <DayTable daily={daily} />
        </details>
      </div>
    </section>
  )
}

const heightOf = (value: number, most: number): number =>
  most === 0 || value === 0 ? 0 : Math.max(2, (value / most) * CHART_HEIGHT)

const units = (value: number): string => String(Math.round(value * 100) / 100)

const dayText = ({ date, costUsd, requests }: ReportDay): string =>
  `${date}: ${usdText(costUsd)}, ${countText(requests)} requests`

const DayTable: FC<{ daily: readonly ReportDay[] }> = ({ daily }) => (
  <div class="scroll-x">
    <table class="figures">
      <thead>
        <tr>
          <th scope="col">Day</th>
          <th scope="col">Cost</th>
          <th scope="col">Requests</th>
          <th scope="col">Failed</th>
          <th scope="col">Tokens in</th>
          <th scope="col">Tokens out</th>
          <th scope="col">Accounts</th>
        </tr>
      </thead>
      <tbody>
        {daily.toReversed().map((day) => (
          <tr>
            <th scope="row">{day.date}</th>
            <td>{usdText(day.costUsd)}</td>
            <td>{countText(day.requests)}</td>
            <td>{countText(day.errors)}</td>
            <td>{shortCount(day.inputTokens)}</td>
            <td>{shortCount(day.outputTokens)}</td>
            <td>{day.activeAccounts}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

interface SharesProps {
  title: string
  shares: readonly ReportShare[]
  /** What requests without one are called. */
  none: string
  gone?: string
}

const SHARES_SHOWN = 12

const Shares: FC<SharesProps> = ({ title, shares, none, gone }) => (
  <section class="card">
    <header class="card-head">
      <h2>{title}</h2>
      <span class="count">{shares.length}</span>
    </header>
    {shares.length === 0 ? (
      <p class="card-part muted">Nothing in these days.</p>
    ) : (
      <table class="figures share-table">
        <thead>
          <tr>
            <th scope="col">
              <span class="sr">Name</span>
            </th>
            <th scope="col">Cost</th>
            <th scope="col">Requests</th>
            <th scope="col">Tokens</th>
          </tr>
        </thead>
        <tbody>
          {shares.slice(0, SHARES_SHOWN).map((share) => (
            <tr>
              <th scope="row">
                <span class="share-name" title={share.name ?? undefined}>
                  {share.name ?? (share.id === null ? none : (gone ?? share.id))}
                </span>
                <svg class="bar bar-low" viewBox="0 0 100 3" preserveAspectRatio="none" role="img">
                  <title>{`${percentText(share.percentage, 100)} of the requests`}</title>
                  <rect class="bar-track" width="100" height="3" />
                  <rect class="bar-fill" width={units(share.percentage)} height="3" />
                </svg>
              </th>
              <td>
                {usdText(share.costUsd)}
                {share.unpriced > 0 && (
                  <span class="muted" title={`${share.unpriced} requests without a known price`}>
                    {' '}
                    +
                  </span>
                )}
              </td>
              <td>{countText(share.requests)}</td>
              <td>{shortCount(share.inputTokens + share.outputTokens)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    )}
    {shares.length > SHARES_SHOWN && (
      <p class="card-part small muted">{shares.length - SHARES_SHOWN} more in the download.</p>
    )}
  </section>
)
