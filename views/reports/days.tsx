/** All values of each day, newest first. */
import type { FC } from 'hono/jsx'
import type { ReportView } from '../../src/admin/reports.ts'
import { countText, shortCount } from '../ui/amounts.ts'
import { TableHead } from '../ui/table.tsx'
import { costOf } from './amounts.ts'

/** More days are in the download, to keep the page small. */
const DAYS_SHOWN = 31

const NUMBERS = ['Cost', 'Requests', 'Errors', 'Tokens in', 'Tokens out']

export const DayFigures: FC<ReportView> = ({ daily, showsAccounts }) => (
  <details class="card fold-card" id="days">
    <summary class="reveal">All figures by day</summary>
    <div class="scroll-x" tabindex={0}>
      <table class="figures">
        <TableHead texts={['Day']} numbers={[...NUMBERS, ...(showsAccounts ? ['Accounts'] : [])]} />
        <tbody>
          {daily
            .slice(-DAYS_SHOWN)
            .toReversed()
            .map((day) => (
              <tr>
                <th>{day.date}</th>
                <td>{costOf(day)}</td>
                <td>{countText(day.requests)}</td>
                <td>{countText(day.errors)}</td>
                <td>{shortCount(day.inputTokens)}</td>
                <td>{shortCount(day.outputTokens)}</td>
                {showsAccounts && <td>{day.activeAccounts}</td>}
              </tr>
            ))}
        </tbody>
      </table>
    </div>
    {daily.length > DAYS_SHOWN && (
      <p class="small muted">{daily.length - DAYS_SHOWN} earlier days are in the download.</p>
    )}
  </details>
)
