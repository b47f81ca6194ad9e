/** `/reports`: what was used in a range of days: sums beside the days before, a chart, and shares. */
import type { Child, FC } from 'hono/jsx'
import type { ReportView } from '../../src/admin/reports.ts'
import type { Sums } from '../../src/model/report-sums.ts'
import type { ReportDay, ReportShare } from '../../src/model/reports.ts'
import { countText, dollarText, plural, shortCount, tokenCost } from '../ui/amounts.ts'
import { Bars } from '../ui/bars.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { ShareBar } from '../ui/meter.tsx'
import { Filter, FilterActions, optionsOf, plainOptions } from '../ui/select.tsx'
import { AsTable, TableHead } from '../ui/table.tsx'
import { momentText } from '../ui/time.tsx'
import { LogHead } from './head.tsx'

export const ReportPage: FC<ReportView> = (report) => (
  <div class="page" data-now={report.generatedAt}>
    <LogHead current="/reports" />
    <Range {...report} />
    <Summary {...report} />
    <Days {...report} />
    <div class="shares">
      <Shares id="models" title="By model" shares={report.byModel} none="no model" />
      {report.byKey && <Shares id="keys" title="By key" shares={report.byKey} none="no key" gone="a deleted key" />}
      <Shares id="accounts" title="By account" shares={report.byAccount} none="no account" gone="a deleted account" />
    </div>
    <p class="small muted">
      Costs are estimates at list prices.
      {report.summary.unpriced > 0 && ' Beside a + some requests have no known price and count as nothing.'} From hourly
      sums, which are kept for ever, as of {momentText(report.generatedAt)} UTC.
    </p>
  </div>
)

const Range: FC<ReportView> = ({ startDate, endDate, timezone, asked, options, links }) => (
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
      <Filter label="Account" name="account_id" chosen={asked.account_id[0]} options={optionsOf(options.accounts)} />
      {options.keys && (
        <Filter label="Key" name="api_key_id" chosen={asked.api_key_id[0]} options={optionsOf(options.keys)} />
      )}
      <Filter label="Model" name="model" chosen={asked.model[0]} options={plainOptions(options.models)} />
      <input type="hidden" name="timezone" value={timezone} data-zone />
      <FilterActions label="Show" />
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
  return (
    <dl class="report-tiles">
      <Tile name="Cost" change={change(({ costUsd }) => costUsd)} note={unpricedText(summary)}>
        {costOf(summary)}
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
      <Tile name="A day" note={plural(fewDigits(summary.avgRequestsPerDay), 'request')}>
        {tokenCost(summary.avgCostPerDayUsd, tokens(summary))}
      </Tile>
      <Tile name="Accounts used">{countText(summary.activeAccounts)}</Tile>
    </dl>
  )
}

/** Of a few, what is behind the point counts: some are not none. */
const fewDigits = (mean: number): number => Number(mean < 1 ? mean.toPrecision(1) : mean.toFixed(mean < 10 ? 1 : 0))

const tokens = ({ inputTokens, outputTokens }: Sums): number => inputTokens + outputTokens

const costOf = (sums: Sums): string => tokenCost(sums.costUsd, tokens(sums))

const Tile: FC<{ name: string; change?: string | null; note?: string | null; children?: Child }> = (tile) => (
  <div class="card report-tile">
    <dt>{tile.name}</dt>
    <dd class="report-value">{tile.children}</dd>
    {(tile.change ?? tile.note) && <dd class="small muted">{[tile.change, tile.note].filter(Boolean).join(' · ')}</dd>}
  </div>
)

const unpricedText = ({ unpriced }: Sums): string | null =>
  unpriced === 0 ? null : `${plural(unpriced, 'request')} without a known price`

const cachedText = ({ inputTokens, cachedInputTokens }: Sums): string | null =>
  inputTokens === 0 ? null : `${percentText(cachedInputTokens, inputTokens)} of input cached`

const percentText = (part: number, whole: number): string =>
  whole === 0 ? '–' : `${Number(((part / whole) * 100).toFixed(part / whole < 0.1 ? 1 : 0))} %`

const changeText = (now: number, before: number): string | null => {
  if (before === 0) return null
  const percent = Math.round((now / before - 1) * 100)
  return percent === 0
    ? 'as before'
    : `${countText(Math.abs(percent))} % ${percent > 0 ? 'more' : 'less'} than the days before`
}

const Days: FC<ReportView> = ({ daily, summary }) => {
  const most = Math.max(...daily.map(({ costUsd }) => costUsd), 0)
  const nothing = tokens(summary) > 0 ? 'no price is known' : 'nothing was used'
  return (
    <TextCard id="days" title="Cost a day" count={most === 0 ? nothing : `up to ${dollarText(most)}`}>
      <figure>
        <Bars
          label={`Cost of each of ${daily.length} days; the table below has the same figures.`}
          bars={daily.map((day) => ({ title: dayText(day), value: day.costUsd }))}
          ends={[daily[0]?.date, daily.at(-1)?.date]}
        />
        <AsTable>
          <DayTable daily={daily} />
        </AsTable>
      </figure>
    </TextCard>
  )
}

const dayText = (day: ReportDay): string => `${day.date}: ${costOf(day)}, ${plural(day.requests, 'request')}`

const DayTable: FC<{ daily: readonly ReportDay[] }> = ({ daily }) => (
  <table class="figures">
    <TableHead texts={['Day']} numbers={['Cost', 'Requests', 'Failed', 'Tokens in', 'Tokens out', 'Accounts']} />
    <tbody>
      {daily.toReversed().map((day) => (
        <tr>
          <th scope="row">{day.date}</th>
          <td>{costOf(day)}</td>
          <td>{countText(day.requests)}</td>
          <td>{countText(day.errors)}</td>
          <td>{shortCount(day.inputTokens)}</td>
          <td>{shortCount(day.outputTokens)}</td>
          <td>{day.activeAccounts}</td>
        </tr>
      ))}
    </tbody>
  </table>
)

interface SharesProps {
  id: string
  title: string
  shares: readonly ReportShare[]
  /** What requests without one are called. */
  none: string
  gone?: string
}

const SHARES_SHOWN = 12

const Shares: FC<SharesProps> = ({ id, title, shares, none, gone }) => (
  <Card id={id} title={title} count={shares.length}>
    {shares.length === 0 ? (
      <p class="card-part muted">Nothing in these days.</p>
    ) : (
      <table class="figures share-table">
        <TableHead texts={['Name']} numbers={['Cost', 'Requests', 'Tokens']} />
        <tbody>
          {shares.slice(0, SHARES_SHOWN).map((share) => (
            <tr>
              <th scope="row">
                <span class="share-name" title={share.name ?? undefined}>
                  {share.name ?? (share.id === null ? none : (gone ?? share.id))}
                </span>
                <ShareBar percent={share.percentage} of="the requests" />
              </th>
              <td>
                {costOf(share)}
                {share.unpriced > 0 && share.costUsd > 0 && (
                  <span class="muted" title={unpricedText(share) ?? undefined}>
                    {' '}
                    +
                  </span>
                )}
              </td>
              <td>{countText(share.requests)}</td>
              <td>{shortCount(tokens(share))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    )}
    {shares.length > SHARES_SHOWN && (
      <p class="card-part small muted">{shares.length - SHARES_SHOWN} more in the download.</p>
    )}
  </Card>
)
