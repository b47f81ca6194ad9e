/** Totals per plan: how many accounts, how many are available, and what they have served. */
import type { FC } from 'hono/jsx'
import type { PlanTotal } from '../../src/model/accounts/account-filter.ts'
import { countText, dollarText } from '../ui/amounts.ts'
import { Card } from '../ui/card.tsx'
import { LivePart } from '../ui/live.tsx'
import { TableHead } from '../ui/table.tsx'
import { planName } from './availability.tsx'

export const PlanTotals: FC<{ plans: readonly PlanTotal[]; src: string }> = ({ plans, src }) => (
  <Card id="plans" title="Totals per plan">
    <div class="scroll-x" tabindex={0}>
      <LivePart id="plan-totals" topics={['accounts', 'usage']} src={src}>
        <table class="figures">
          <TableHead texts={['Plan']} numbers={['Accounts', 'Available', 'Requests', 'Cost']} />
          <tbody>
            {plans.map(({ plan, accounts, available, requests, costUsd }) => (
              <tr>
                <th scope="row">{planName(plan) ?? 'Unknown'}</th>
                <td>{countText(accounts)}</td>
                <td>{countText(available)}</td>
                <td>{countText(requests)}</td>
                <td>{dollarText(costUsd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </LivePart>
    </div>
  </Card>
)
