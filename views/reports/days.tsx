/** All values of each day, newest first. */
import type { FC } from 'hono/jsx'
import { countText, shortCount } from '../ui/amounts.ts'
import { TableHead } from '../ui/table.tsx'
import { durationText } from '../ui/time.tsx'
import { getCost } from './amounts.ts'
import type { ReportView } from './page.tsx'

/** More days are in the download, to keep the page small. */
const DAYS_SHOWN = 31

const NUMBERS = ['Cost', 'Requests', 'Errors', 'Tokens in', 'Tokens out']
/** Medians, and what a filter hides. */
const DIGESTS = ['Conversations', 'First token', 'Tokens/s']

export const DayFigures: FC<ReportView> = ({ daily, showsAccounts, summary }) => (
  <details class="card fold-card" id="days">
    <summary class="reveal">All figures by day</summary>
    <div class="scroll-x" tabindex={0}>
      <table class="figures">
        <TableHead
          texts={['Day']}
          numbers={[
            ...NUMBERS,
            ...(summary.conversations === null ? [] : DIGESTS),
            ...(showsAccounts ? ['Accounts'] : []),
          ]}
        />
        <tbody>
          {daily
            .slice(-DAYS_SHOWN)
            .toReversed()
            .map((day) => (
              <tr>
                <th>{day.date}</th>
                <td>{getCost(day)}</td>
                <td>{countText(day.requests)}</td>
                <td>{countText(day.errors)}</td>
                <td>{shortCount(day.inputTokens)}</td>
                <td>{shortCount(day.outputTokens)}</td>
                {day.conversations !== null && (
                  <>
                    <td>{countText(day.conversations)}</td>
                    <td>{day.medianFirstTokenMs === null ? '–' : durationText(day.medianFirstTokenMs)}</td>
                    <td>{day.medianTokensPerSecond?.toFixed(0) ?? '–'}</td>
                  </>
                )}
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
