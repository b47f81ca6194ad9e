/** Where an account's quota went: through Sluice or elsewhere, by key and model, at what price, and what was odd. */
import type { FC } from 'hono/jsx'
import { windowLabel, windowName } from '../../src/model/accounts/account-words.ts'
import type { Statement, StatementShare, WeekValue } from '../../src/model/accounts/statement-read.ts'
import { countText, dollarText, plural } from '../ui/amounts.ts'
import { Card, TextCard } from '../ui/card.tsx'
import { ShareBar } from '../ui/meter.tsx'
import { units } from '../ui/svg.ts'
import { TableHead } from '../ui/table.tsx'
import { dateText, Moment } from '../ui/time.tsx'
import { withQuery } from '../ui/with-query.ts'
import { accountPath } from './links.ts'

type Window = Statement['window']
type Period = 'window' | '7d' | '30d' | '90d'

export interface StatementProps extends Omit<Statement, 'byKey'> {
  /** Null if hidden from the user. */
  byKey: Statement['byKey'] | null
  /** The windows for which there are readings. */
  windows: readonly Window[]
  period: Period
}

export const StatementTab: FC<StatementProps> = (props) => (
  <>
    <Choices {...props} />
    <TextCard id="statement" title={`${windowLabel(props.window)} quota`} aside={<Files {...props} />}>
      {props.firstReadingAt === null ? (
        <p class="muted">The meter did not move in this period. Readings are stored when it does.</p>
      ) : (
        <Use {...props} />
      )}
    </TextCard>
    {props.here.requests > 0 && <Shares {...props} />}
    <Price {...props} />
    <Oddities {...props} />
  </>
)

const PERIODS: Record<Period, string> = {
  window: 'Current window',
  '7d': '7 days',
  '30d': '30 days',
  '90d': '90 days',
}

const Choices: FC<StatementProps> = ({ accountId, window, windows, period }) => {
  const link = (change: { window?: Window; period?: Period }) => {
    const asked = { window, period, ...change }
    return withQuery(accountPath(accountId), {
      tab: 'statement',
      window: asked.window === 'weekly' ? null : asked.window,
      period: asked.period === 'window' ? null : asked.period,
    })
  }
  const offered = (['five_hour', 'weekly', 'monthly'] as const).filter((one) => windows.includes(one) || one === window)
  return (
    <div class="statement-choices">
      <nav class="periods" aria-label="Quota">
        {offered.map((one) => (
          <a href={link({ window: one })} aria-current={one === window ? 'true' : undefined}>
            {windowLabel(one)}
          </a>
        ))}
      </nav>
      <nav class="periods" aria-label="Period">
        {(Object.keys(PERIODS) as Period[]).map(
          (
            one, // as: a record of all periods
          ) => (
            <a href={link({ period: one })} aria-current={one === period ? 'true' : undefined}>
              {PERIODS[one]}
            </a>
          ),
        )}
      </nav>
    </div>
  )
}

const Files: FC<StatementProps> = ({ accountId, window, from, to }) => {
  const path = `/api${accountPath(accountId)}/statement`
  return (
    <span class="card-action small">
      <a href={withQuery(path, { window, from, to, format: 'csv' })}>CSV</a> ·{' '}
      <a href={withQuery(path, { window, from, to })}>JSON</a>
    </span>
  )
}

const Use: FC<StatementProps> = ({ usedPercent, here, elsewherePercent, from, to, firstReadingAt }) => (
  <>
    <p class="statement-sentence">
      <b>{percentText(usedPercent)} used</b>: {percentText(here.percent)} by {plural(here.requests, 'request')} through
      Sluice,{' '}
      {elsewherePercent === null
        ? 'elsewhere unknown while requests are running'
        : `${percentText(elsewherePercent)} elsewhere`}
      .
    </p>
    <svg class="bar statement-bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img">
      <title>{`${percentText(here.percent)} through Sluice, ${elsewherePercent === null ? 'elsewhere unknown' : `${percentText(elsewherePercent)} elsewhere`}`}</title>
      <rect class="statement-here" width={units(partOf(here.percent, usedPercent))} height="10" />
      {elsewherePercent !== null && (
        <rect
          class="statement-elsewhere"
          x={units(100 - partOf(elsewherePercent, usedPercent))}
          width={units(partOf(elsewherePercent, usedPercent))}
          height="10"
        />
      )}
    </svg>
    <p class="statement-legend small muted">
      <span class="statement-key statement-key-here">Through Sluice</span>
      <span class="statement-key statement-key-elsewhere">Elsewhere</span>
    </p>
    <p class="small muted">
      From <Moment at={from} /> to <Moment at={to} />, first reading <Moment at={firstReadingAt ?? from} />. The split
      is an estimate{here.spread > 0 && `, accurate to about ± ${percentText(here.spread)}`}. Elsewhere is what the
      meter moved without requests through Sluice, for example in the ChatGPT app.
    </p>
  </>
)

const partOf = (percent: number, whole: number): number => (whole > 0 ? (percent / whole) * 100 : 0)

/** "6.4 %", with more digits for small parts. */
const percentText = (percent: number): string => {
  if (percent > 0 && percent < 0.01) return '<0.01 %'
  return `${percent.toFixed(percent > 0 && percent < 0.1 ? 2 : 1)} %`
}

const Shares: FC<StatementProps> = ({ byKey, byModel, here }) => (
  <Card id="statement-shares" title="Used through Sluice" count={plural(here.requests, 'request')}>
    <div class="spend">
      <ShareTable title="Model" rows={byModel} none="no model" />
      {byKey && <ShareTable title="Key" rows={byKey} none="no key, or a deleted key" />}
    </div>
  </Card>
)

const ShareTable: FC<{ title: string; rows: readonly StatementShare[]; none: string }> = ({ title, rows, none }) => {
  const total = rows.reduce((sum, { percent }) => sum + percent, 0)
  return (
    <table class="figures">
      <TableHead texts={[title]} numbers={['Quota', 'Requests', 'Cost']} />
      <tbody>
        {rows.map((row) => (
          <tr>
            <th scope="row">
              {row.name ?? <span class="muted">{none}</span>}
              <ShareBar percent={partOf(row.percent, total)} of="what Sluice used" />
            </th>
            <td>{percentText(row.percent)}</td>
            <td>{countText(row.requests)}</td>
            <td>{row.costUsd === 0 && row.tokens > 0 ? '–' : dollarText(row.costUsd)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const Price: FC<StatementProps> = ({ window, costPerPercentUsd: { value, spread, weeks } }) => {
  const known = weeks.filter((week) => week.value !== null)
  return (
    <Card id="percent-price" title="What one percent buys">
      <p class="card-part">
        {value === null ? (
          <span class="muted">Not enough has been used through Sluice to tell.</span>
        ) : (
          <>
            One percent of the {windowName(window)} quota buys requests for about <b>{priceText(value, spread)}</b> at
            API list prices.
          </>
        )}
      </p>
      {known.length > 1 && <Weeks weeks={weeks} />}
    </Card>
  )
}

/** "$8.51 ± 0.04". */
const priceText = (usd: number | null, spread: number | null): string => {
  if (usd === null) return '–'
  return spread !== null && spread >= 0.005 ? `${dollarText(usd)} ± ${spread.toFixed(2)}` : dollarText(usd)
}

const Weeks: FC<{ weeks: readonly WeekValue[] }> = ({ weeks }) => (
  <table class="figures">
    <TableHead texts={['Week of']} numbers={['One percent', 'Change']} />
    <tbody>
      {weeks
        .map(({ from, value, spread }, index) => (
          <tr>
            <th scope="row">{dateText(from)}</th>
            <td>{priceText(value, spread)}</td>
            <td>{changeText(value, weeks[index - 1]?.value ?? null)}</td>
          </tr>
        ))
        .toReversed()}
    </tbody>
  </table>
)

const changeText = (value: number | null, before: number | null): string => {
  if (value === null || before === null || before === 0) return '–'
  const percent = Math.round((value / before - 1) * 100)
  return `${percent > 0 ? '+' : ''}${percent} %`
}

const Oddities: FC<StatementProps> = ({ oddities }) => (
  <Card id="oddities" title="Oddities" count={oddities.length}>
    {oddities.length === 0 ? (
      <p class="card-part muted">Nothing odd in this period.</p>
    ) : (
      <ol>
        {oddities.toReversed().map(({ at, text }) => (
          <li class="oddity">
            <span class="muted">
              <Moment at={at} />
            </span>
            <span>{text}</span>
          </li>
        ))}
      </ol>
    )}
  </Card>
)
