/** The chart of a report: one measure over time, stacked, next to the previous period. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import type { Measure, ReportBar, ReportBars, Stack } from '../../src/model/reports/report-bars.ts'
import { NONE_FILTER, OTHER_CLIENTS } from '../../src/model/reports/report-filters.ts'
import type { Sums } from '../../src/model/reports/report-sums.ts'
import { countText, dollarText, plural, shortCount } from '../ui/amounts.ts'
import { TextCard } from '../ui/card.tsx'
import { Chart, type Layer } from '../ui/chart.tsx'
import { localTimes } from '../ui/local-time.ts'
import { TableHead } from '../ui/table.tsx'
import { durationText } from '../ui/time.tsx'
import { tokens } from './amounts.ts'
import { hrefWith } from './links.ts'
import type { ReportView } from './page.tsx'

interface MeasureWords {
  name: string
  text: (value: number) => string
  /** null: unknown. */
  of: (sums: Sums, firstToken: number | null) => number | null
}

const percent = (value: number): string => `${Math.round(value)} %`

const MEASURES: Record<Measure, MeasureWords> = {
  cost: { name: 'Cost', text: dollarText, of: ({ costUsd }) => costUsd },
  tokens: { name: 'Tokens', text: shortCount, of: tokens },
  requests: { name: 'Requests', text: countText, of: ({ requests }) => requests },
  latency: { name: 'First token', text: durationText, of: (_, firstToken) => firstToken },
  cache: {
    name: 'Cached input',
    text: percent,
    of: ({ inputTokens, cachedInputTokens }) => (inputTokens === 0 ? null : (cachedInputTokens / inputTokens) * 100),
  },
}

const STACKS: Record<Stack, string> = {
  model: 'Model',
  key: 'Key',
  account: 'Account',
  client: 'Client',
  none: 'Total',
}
const FILTERS = { model: 'model', key: 'api_key_id', account: 'account_id', client: 'client' } as const
const NONE: Record<Stack, string> = {
  model: 'no model',
  key: 'no key',
  account: 'no account',
  client: 'unknown client',
  none: '',
}

/** More would be too thin to distinguish. */
const LAYERS_SHOWN = 5

export const ReportChart: FC<ReportView> = ({ chart, params, timezone, byKey, showsAccounts, asked }) => {
  const { measure, bars, ticks } = chart
  const { name, text, of } = MEASURES[measure]
  const values = bars.map(({ sums, firstToken }) => of(sums, firstToken?.p50 ?? null))
  const before = bars.map(({ previous, firstToken }) => of(previous, firstToken?.previousP50 ?? null))
  const layers = getLayers(
    chart,
    values.map((value) => value ?? 0),
    params,
  )
  const hasBefore = before.some((value) => value)
  const timeOf = localTimes(timezone, isHourly(bars) ? 'moment' : 'date')
  const heads = [
    ...(layers.length > 1 ? layers.map((layer) => layer.name) : []),
    measure === 'latency' ? 'Median' : layers.length > 1 ? 'Total' : name,
  ]
  return (
    <TextCard
      id="chart"
      title={`${name} per ${getStep(bars)}`}
      aside={
        <Switches
          chart={chart}
          params={params}
          lacks={[...(byKey ? [] : ['key']), ...(showsAccounts ? [] : ['account'])]}
        />
      }
    >
      <Chart
        label={`${name} per ${getStep(bars)}. The table below has the figures.`}
        layers={layers}
        line={hasBefore ? { name: 'Previous period', values: before } : null}
        cells={bars.length}
        ticks={ticks}
        scale={text}
      >
        <table class="figures">
          <TableHead texts={['From']} numbers={[...heads, ...(measure === 'latency' ? ['p95'] : []), 'Previous']} />
          <tbody>
            {bars
              .map((bar, n) => (
                <tr>
                  <th>
                    <BarLink href={logHref(bar, asked)}>{timeOf(bar.from)}</BarLink>
                  </th>
                  {layers.length > 1 && layers.map((layer) => <td>{text(layer.values[n] ?? 0)}</td>)}
                  <Amount value={values[n] ?? null} text={text} />
                  {measure === 'latency' && <Amount value={bar.firstToken?.p95 ?? null} text={text} />}
                  <Amount value={before[n] ?? null} text={text} />
                </tr>
              ))
              .toReversed()}
          </tbody>
        </table>
      </Chart>
    </TextCard>
  )
}

const BarLink: FC<PropsWithChildren<{ href: string | undefined }>> = ({ href, children }) =>
  href ? <a href={href}>{children}</a> : children

const Amount: FC<{ value: number | null; text: (value: number) => string }> = ({ value, text }) => (
  <td>{value === null ? '–' : text(value)}</td>
)

const HOUR_MS = 3_600_000

const lengthMs = ({ from, to }: ReportBar): number => Date.parse(to) - Date.parse(from)

const isHourly = ([first]: readonly ReportBar[]): boolean => first !== undefined && lengthMs(first) <= HOUR_MS

const getStep = (bars: readonly ReportBar[]): string => {
  if (isHourly(bars)) return 'hour'
  const [first] = bars
  return first && lengthMs(first) > 48 * HOUR_MS ? 'week' : 'day'
}

/** Legend entries filter the report. */
const getLayers = (
  { measure, stack, layers }: ReportBars,
  values: readonly number[],
  params: ReportView['params'],
): Layer[] => {
  if (layers.length < 2) return [{ name: MEASURES[measure].name, kind: '1', values }]
  const amount = (sums: Sums): number => MEASURES[measure].of(sums, null) ?? 0
  const shown = layers.slice(0, LAYERS_SHOWN).map(
    ({ id, name, sums }, n): Layer => ({
      name: name ?? (id === null ? NONE[stack] : 'deleted'),
      kind: String(n + 1),
      values: sums.map(amount),
      href: stack === 'none' ? undefined : hrefWith(params, { [FILTERS[stack]]: id ?? NONE_FILTER }),
    }),
  )
  const rest = layers.slice(LAYERS_SHOWN)
  if (rest.length === 0) return shown
  const others = values.map((_, n) => rest.reduce((all, { sums }) => all + (sums[n] ? amount(sums[n]) : 0), 0))
  return [...shown, { name: plural(rest.length, 'other'), kind: 'other', values: others }]
}

/** The log cannot filter by these. */
const isNotInLog = (id: string): boolean => id === NONE_FILTER || id === OTHER_CLIENTS

/** The requests of a bar under the same filters. */
const logHref = ({ from, to }: ReportBar, asked: ReportView['asked']): string | undefined => {
  if (Object.values(asked).some((ids) => ids.some(isNotInLog))) return undefined
  const filters = [
    ...asked.account_id.map((id) => ['accountId', id]),
    ...asked.api_key_id.map((id) => ['apiKeyId', id]),
    ...asked.model.map((model) => ['model', model]),
    ...asked.client.map((client) => ['client', client]),
  ]
  const params = new URLSearchParams(filters)
  return `/logs?since=${from.slice(0, 19)}Z&until=${to.slice(0, 19)}Z${filters.length > 0 ? `&${params}` : ''}`
}

type SwitchProps = Pick<ReportView, 'chart' | 'params'> & {
  /** Stacks this user may not see. */
  lacks: readonly string[]
}

const Switches: FC<SwitchProps> = ({ chart, params, lacks }) => {
  const isStackable = chart.measure !== 'latency' && chart.measure !== 'cache'
  const stacks = (Object.keys(STACKS) as Stack[]).filter((stack) => !lacks.includes(stack)) // as: a record of all
  return (
    <span class="chart-switches">
      <nav class="periods" aria-label="Measure">
        {(Object.keys(MEASURES) as Measure[]).map(
          (
            measure, // as: a record of all
          ) => (
            <a href={hrefWith(params, { measure })} aria-current={measure === chart.measure ? 'true' : undefined}>
              {MEASURES[measure].name}
            </a>
          ),
        )}
      </nav>
      {isStackable && (
        <nav class="periods" aria-label="Stack by">
          {stacks.map((stack) => (
            <a href={hrefWith(params, { stack })} aria-current={stack === chart.stack ? 'true' : undefined}>
              {STACKS[stack]}
            </a>
          ))}
        </nav>
      )}
    </span>
  )
}
