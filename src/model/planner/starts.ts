/** Whether a planned start can be made, and the sentence about it. */
import type { AppError } from '../../errors.ts'
import { getOffsets } from '../../lib/zoned-days.ts'
import { type AccountState, isInUse } from '../accounts/account-state.ts'
import { windowStartRefusal } from '../accounts/preserve-floors.ts'
import { isUnstarted } from '../accounts/usage-windows.ts'

type Startable = Parameters<typeof windowStartRefusal>[0] & { readonly state: AccountState }

/** Why the window of the account cannot be started now; null: it can. */
export const startProblem = (
  account: Startable,
  all: Parameters<typeof windowStartRefusal>[1],
  now: number,
): string | null => {
  if (!isInUse(account.state)) return 'The account is not in use.'
  const refusal = windowStartRefusal(account, all, now)
  if (refusal !== null) return refusal
  return isUnstarted(account.usage, now) ? null : 'The five-hour window of this account has already started.'
}

/** Without words of ChatGPT, because viewers read it. The account's history has them. */
export const failureText = ({ code, message, extra }: AppError): string =>
  code === 'no_accounts' ? message : `The request failed (${extra.upstream?.code ?? code}).`

/** `+12 % served between 12:00 and 15:00`, in the clock of the zone. */
export const gainText = (
  { gainPercent, from, to }: { gainPercent: number; from: number; to: number },
  zone: string,
): string => `+${gainPercent} % served between ${clockTime(from, zone)} and ${clockTime(to, zone)}`

/** HH:MM */
export const clockTime = (at: number, zone: string): string =>
  new Date(at + getOffsets(zone)(at)).toISOString().slice(11, 16)
