/** The accounts as cards. */
import type { FC } from 'hono/jsx'
import { StateBadge } from '../ui/badge.tsx'
import { Eligibility, Evidence, Windows } from './availability.tsx'
import type { AccountsProps } from './list.tsx'
import { Name, SelectAccount } from './table.tsx'

export const AccountCards: FC<AccountsProps> = ({ accounts, mayWrite, now }) => (
  <ul class="account-cards">
    {accounts.map((account) => (
      <li class="account-card">
        <div class="account-card-head">
          <span class="account-name">
            <Name account={account} />
          </span>
          {mayWrite && <SelectAccount account={account} />}
        </div>
        <div class="account-state">
          <StateBadge status={account.status} />
          <Eligibility account={account} now={now} />
          <Evidence account={account} now={now} />
        </div>
        <div class="account-windows">
          <Windows account={account} now={now} />
        </div>
      </li>
    ))}
  </ul>
)
