/** Usage by model, key or account; every row filters the report. */
import type { FC } from 'hono/jsx'
import { NONE_FILTER } from '../../src/model/reports/report-filters.ts'
import type { ReportShare } from '../../src/model/reports/reports.ts'
import { countText, shortCount } from '../ui/amounts.ts'
import { Card } from '../ui/card.tsx'
import { ShareBar } from '../ui/meter.tsx'
import { TableHead } from '../ui/table.tsx'
import { getCost, tokens, unpricedText } from './amounts.ts'
import { hrefWith } from './links.ts'
import type { ReportView } from './page.tsx'

interface SharesProps extends Pick<ReportView, 'params'> {
  id: string
  title: string
  shares: readonly ReportShare[]
  /** The parameter a row filters by. */
  filter: 'model' | 'api_key_id' | 'account_id' | 'client' | 'source_id'
  /** Text for requests without one. */
  none: string
  gone?: string
}

const SHARES_SHOWN = 12

export const Shares: FC<SharesProps> = ({ id, title, shares, none, gone, filter, params }) => (
  <Card id={id} title={title} count={shares.length}>
    {shares.length === 0 ? (
      <p class="card-part muted">No requests in this period.</p>
    ) : (
      <table class="figures share-table">
        <TableHead texts={['Name']} numbers={['Cost', 'Requests', 'Tokens']} />
        <tbody>
          {shares.slice(0, SHARES_SHOWN).map((share) => (
            <tr>
              <th scope="row">
                <ShareName share={share} none={none} gone={gone} filter={filter} params={params} />
                <ShareBar percent={share.percentage} of="the requests" />
              </th>
              <td>
                {getCost(share)}
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

type NameProps = Pick<SharesProps, 'none' | 'gone' | 'filter' | 'params'> & { share: ReportShare }

const ShareName: FC<NameProps> = ({ share: { id, name }, none, gone, filter, params }) => {
  const text = id === null ? none : (name ?? gone ?? id)
  return (
    <a class="share-name" title={text} href={hrefWith(params, { [filter]: id ?? NONE_FILTER })}>
      {text}
    </a>
  )
}
