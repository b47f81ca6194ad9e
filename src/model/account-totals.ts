/** What the accounts have done for as long as they are here, as the dashboard's clients read it. */
import type { Db } from '../../db/commit.ts'
import { accountTotals } from '../../db/schema/accounts.ts'

export interface AccountUse {
  requestCount: number
  totalTokens: number
  cachedInputTokens: number
  /** What the same would have cost at list price; turns without a known price are missing from it. */
  totalCostUsd: number
}

export const NO_USE: AccountUse = Object.freeze({
  requestCount: 0,
  totalTokens: 0,
  cachedInputTokens: 0,
  totalCostUsd: 0,
})

/** By account id; who has done nothing is missing. */
export const usesOf = (db: Db): Map<string, AccountUse> =>
  new Map(
    db
      .select()
      .from(accountTotals)
      .all()
      .map(({ accountId, requests, inputTokens, cachedInputTokens, outputTokens, costMicros }) => [
        accountId,
        {
          requestCount: requests,
          totalTokens: inputTokens + outputTokens,
          cachedInputTokens,
          totalCostUsd: costMicros / 1e6,
        },
      ]),
  )
