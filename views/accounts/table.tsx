/** The accounts as a sortable table; on a phone each row takes several lines. */
import type { FC } from 'hono/jsx'
import type { AccountSort, ListedAccount } from '../../src/model/accounts/account-filter.ts'
import type { WireAccount, WireWindow } from '../../src/model/accounts/account-view.ts'
import { countText, dollarText } from '../ui/amounts.ts'
import { StateBadge } from '../ui/badge.tsx'
import { getTone, leftPercent } from '../ui/meter.tsx'
import { SortHeading } from '../ui/table.tsx'
import { Since, Until } from '../ui/time.tsx'
import { Eligibility, getAddress, getFacts } from './availability.tsx'
import { accountPath, listLink } from './links.ts'
import type { AccountsProps } from './list.tsx'

export const AccountTable: FC<AccountsProps> = ({ accounts, query, mayWrite, now }) => (
  <table class="list accounts">
    <thead>
      <tr>
        {mayWrite && (
          <th scope="col" class="cell-check">
            <input
              type="checkbox"
              class="needs-script"
              aria-label="Select all on this page"
              data-select-all="accountIds"
            />
          </th>
        )}
        <Heading by="name" label="Account" query={query} />
        <Heading by="state" label="State" query={query} />
        <Heading by="five_hour" label="5-hour" query={query} />
        <Heading by="weekly" label="Weekly" query={query} />
        <Heading by="in_flight" label="Running" query={query} isNumber />
        <Heading by="requests" label="Requests" query={query} isNumber />
        <Heading by="cost" label="Cost" query={query} isNumber />
        <Heading by="used" label="Last used" query={query} isNumber />
      </tr>
    </thead>
    <tbody>
      {accounts.map((account) => (
        <Row account={account} mayWrite={mayWrite} now={now} />
      ))}
    </tbody>
  </table>
)

interface HeadingProps extends Pick<AccountsProps, 'query'> {
  by: AccountSort
  label: string
  isNumber?: boolean
}

const Heading: FC<HeadingProps> = ({ by, label, query, isNumber }) => {
  const isSorted = query.sort === by
  const order = isSorted && query.order === 'asc' ? 'desc' : 'asc'
  return (
    <SortHeading
      label={label}
      href={listLink(query, { sort: by, order })}
      order={isSorted ? query.order : null}
      isNumber={isNumber}
    />
  )
}

const Row: FC<{ account: ListedAccount; mayWrite: boolean; now: string }> = ({ account, mayWrite, now }) => (
  <tr>
    {mayWrite && (
      <td class="cell-check">
        <SelectAccount account={account} />
      </td>
    )}
    <td class="cell-name">
      <Name account={account} />
    </td>
    <td class="cell-state">
      <StateBadge status={account.status} />
      <Eligibility account={account} now={now} />
    </td>
    <td class="cell-window" data-label="5-hour">
      <Window window={account.windows.fiveHour} now={now} />
    </td>
    <LongWindow account={account} now={now} />
    <td class="cell-total number">{account.inFlight}</td>
    <td class="cell-total number" data-label="Requests">
      {countText(account.requests)}
    </td>
    <td class="cell-total number" data-label="Cost">
      {dollarText(account.costUsd)}
    </td>
    <td class="cell-total number" data-label="Last used">
      {account.lastUsedAt ? <Since at={account.lastUsedAt} now={now} /> : 'never'}
    </td>
  </tr>
)

/** Plans without a weekly window have a monthly one. */
const LongWindow: FC<{ account: WireAccount; now: string }> = ({ account: { windows }, now }) => {
  const isMonthly = !windows.weekly && windows.monthly !== null
  return (
    <td class="cell-window" data-label={isMonthly ? 'Monthly' : 'Weekly'}>
      <Window window={windows.weekly ?? windows.monthly} now={now} />
    </td>
  )
}

export const Name: FC<{ account: WireAccount }> = ({ account }) => (
  <>
    <a class="account-link" href={accountPath(account.accountId)}>
      {account.displayName}
    </a>
    <span class="muted small">{[getAddress(account), ...getFacts(account)].filter(Boolean).join(' · ')}</span>
  </>
)

export const SelectAccount: FC<{ account: WireAccount }> = ({ account }) => (
  <input
    id={`pick-${account.accountId}`}
    type="checkbox"
    name="accountIds"
    value={account.accountId}
    form="form-bulk"
    aria-label={`Select ${account.displayName}`}
  />
)

/** The text repeats what the bar shows. There are many per page, so the markup is small. */
const Window: FC<{ window: WireWindow | null; now: string }> = ({ window, now }) =>
  window === null ? (
    <span>not reported</span>
  ) : (
    <>
      <progress
        class={getTone(window.usedPercent)}
        max="100"
        value={String(Math.round(window.usedPercent))}
        aria-hidden="true"
      />
      <span>{leftPercent(window.usedPercent)} % left</span>
      {window.resetAt && (
        <span>
          resets <Until at={window.resetAt} now={now} />
        </span>
      )}
    </>
  )
