/** Conversations of the request log: pages of the list, and one in detail. Names in the answers are those of existing clients. */
import { desc, eq } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { requests } from '../../../db/schema/requests.ts'
import { iso } from '../../lib/iso.ts'
import { clientName, programName } from '../../lib/user-agent.ts'
import { accountNames } from '../accounts/account-names.ts'
import { getCursor, type LogStatus, logStatus } from '../log/request-log-query.ts'
import type { HiddenFields } from '../log/request-view.ts'
import { cachedShare, countRequestsBy, getParts, getReach, getSum, type Part, type Reach } from './conversation-sums.ts'
import { type ConversationSearch, findConversations, getPlace } from './find-conversations.ts'

export type ConversationEntry = ReturnType<typeof toEntry>

export interface ConversationPage {
  /** By their last request, newest first. */
  conversations: ConversationEntry[]
  /** Only when all are on the first page; null: not counted. */
  total: number | null
  hasMore: boolean
  nextCursor: string | null
  /** ISO 8601: where the search stopped, because a page reads at most 50,000 requests, or 10,000 for a search; null: it was complete. */
  searchedTo: string | null
}

export interface ConversationListing extends ConversationSearch {
  limit: number
  offset: number
}

/** Newest requests of each conversation that a list adds up. */
const MAX_LISTED = 1000
/** The same for one conversation: about 50 ms. */
const MAX_DETAILED = 20_000
const MAX_OUTCOMES = 120

/** Following `nextCursor` never repeats a conversation; one that goes on in the meantime moves to the first page. */
export const conversations = async (
  db: Db,
  query: ConversationListing,
  hiddenFields: HiddenFields,
): Promise<ConversationPage> => {
  const offset = query.cursor ? 0 : query.offset
  const end = offset + query.limit
  const { places, stoppedAt } = await findConversations(db, query, hiddenFields, end + 1)
  const shown = places.slice(offset, end)
  const next = places.length > end ? (shown.at(-1) ?? null) : stoppedAt
  return {
    conversations: await getEntries(
      db,
      shown.map(({ conversationId }) => conversationId),
      hiddenFields,
    ),
    total: next === null && !query.cursor ? places.length : null,
    hasMore: next !== null,
    nextCursor: next && getCursor(next),
    searchedTo: stoppedAt && places.length <= end ? iso(stoppedAt.startedAt) : null,
  }
}

interface Names {
  accounts: ReadonlyMap<string, string>
  keys: ReadonlyMap<string, string>
  hidesKeys: boolean
}

const namesFor = async (db: Db, hiddenFields: HiddenFields): Promise<Names> => ({
  accounts: await accountNames(db, hiddenFields),
  keys: new Map(
    hiddenFields.hidesKeys
      ? []
      : (await db.select({ id: apiKeys.id, name: apiKeys.name }).from(apiKeys).all()).map(({ id, name }) => [id, name]),
  ),
  hidesKeys: hiddenFields.hidesKeys,
})

const getEntries = async (
  db: Db,
  conversationIds: readonly string[],
  hiddenFields: HiddenFields,
): Promise<ConversationEntry[]> => {
  if (conversationIds.length === 0) return []
  const reach = await getReach(db, conversationIds, MAX_LISTED)
  const parts = Map.groupBy(await getParts(db, reach), ({ conversationId }) => conversationId)
  const names = await namesFor(db, hiddenFields)
  return reach.map((one) => toEntry(one, parts.get(one.conversationId) ?? [], names))
}

const toEntry = (reach: Reach, parts: readonly Part[], names: Names) => {
  const [account = null, ...otherAccounts] = countRequestsBy(parts, 'accountId')
  const [model = null, ...otherModels] = countRequestsBy(parts, 'model')
  return {
    ...getTotals(reach, parts),
    firstRequest: iso(reach.first),
    lastRequest: iso(getLast(reach, parts)),
    representativeAccountId: account?.id ?? null,
    /** The account that served most requests; null: deleted, or none. */
    representativeAccount: account && (names.accounts.get(account.id) ?? null),
    remainingAccountCount: otherAccounts.length,
    ...toKey(parts, names),
    representativeModel: model?.id ?? null,
    remainingModelCount: otherModels.length,
  }
}

const getTotals = (reach: Reach, parts: readonly Part[]) => {
  const [inputTokens, outputTokens] = [getSum(parts, 'inputTokens'), getSum(parts, 'outputTokens')]
  return {
    conversationId: reach.conversationId,
    requestCount: reach.requests,
    /** Only the newest requests are in the sums. */
    isPartial: reach.floor !== null,
    totalTokens: inputTokens + outputTokens,
    inputTokens,
    cachedInputTokens: getSum(parts, 'cachedInputTokens'),
    outputTokens,
    /** The cached share of the input, 0 to 1. Null: no usage was reported. */
    cachedShare: cachedShare(parts),
    totalCostUsd: getSum(parts, 'costMicros') / 1e6,
    errors: getSum(parts, 'errors'),
    /** How often it left the account that owned it. */
    moves: getSum(parts, 'moves'),
  }
}

const getLast = ({ first }: Reach, parts: readonly Part[]): number => Math.max(first, ...parts.map(({ last }) => last))

/** A conversation belongs to one key, because its hash includes it. */
const toKey = (parts: readonly Part[], { keys, hidesKeys }: Names) => {
  const [key] = hidesKeys ? [] : countRequestsBy(parts, 'keyId')
  return { apiKeyId: key?.id ?? null, apiKeyName: key ? (keys.get(key.id) ?? null) : null }
}

export type ConversationDetail = NonNullable<Awaited<ReturnType<typeof conversation>>>

/** null: no request of it is in the log. Times are ISO 8601, elapsed times are ms. */
export const conversation = async (db: Db, conversationId: string, hiddenFields: HiddenFields) => {
  const [reach] = (await getPlace(db, conversationId)) ? await getReach(db, [conversationId], MAX_DETAILED) : []
  if (!reach) return null
  const parts = await getParts(db, [reach])
  const names = await namesFor(db, hiddenFields)
  const accounts = countRequestsBy(parts, 'accountId')
  const ended = await newest(db, conversationId)
  const client = dominantClient(ended)
  return {
    ...getTotals(reach, parts),
    start: iso(reach.first),
    latest: iso(getLast(reach, parts)),
    cancelled: getSum(parts, 'cancelled'),
    totalElapsedTime: getSum(parts, 'elapsedMs'),
    /** Tokens that moves sent uncached: what they cost. */
    movedInputTokens: getSum(parts, 'movedTokens'),
    /** Moves for which the previous account could have served it and the move cost more than staying. */
    avoidableMoves: getSum(parts, 'avoidableMoves'),
    accountCount: accounts.length,
    accounts: accounts.map(({ id, requests: count }) => ({
      accountId: id,
      accountName: names.accounts.get(id) ?? null,
      requestCount: count,
    })),
    ...toKey(parts, names),
    dominantUseragentGroup: client,
    dominantClientName: client === null ? null : programName(client),
    modelStats: modelStats(parts),
    /** How the newest requests ended, oldest first. */
    outcomes: getOutcomes(ended),
  }
}

type Ended = Awaited<ReturnType<typeof newest>>[number]

/** Oldest first. */
const getOutcomes = (ended: readonly Ended[]): { status: LogStatus; moved: boolean }[] =>
  ended.map((row) => ({ status: logStatus(row), moved: row.moved })).toReversed()

const dominantClient = (ended: readonly Ended[]): string | null => {
  const clients = ended.flatMap(({ userAgent }) => clientName(userAgent) ?? [])
  const counts = [...Map.groupBy(clients, (name) => name)].toSorted(([, a], [, b]) => b.length - a.length)
  return counts[0]?.[0] ?? null
}

const newest = (db: Db, conversationId: string) =>
  db
    .select({
      status: requests.status,
      errorCode: requests.errorCode,
      moved: requests.moved,
      userAgent: requests.userAgent,
    })
    .from(requests)
    .where(eq(requests.conversationHash, conversationId))
    .orderBy(desc(requests.startedAt), desc(requests.id))
    .limit(MAX_OUTCOMES)
    .all()

const modelStats = (parts: readonly Part[]) =>
  [...Map.groupBy(parts, ({ model, effort }) => JSON.stringify([model, effort]))]
    .map(([, same]) => ({
      modelEffort: { model: same[0]?.model ?? null, reasoningEffort: same[0]?.effort ?? null },
      reqs: getSum(same, 'requests'),
      totalElapsedTime: getSum(same, 'elapsedMs'),
      totalInputTokens: getSum(same, 'inputTokens'),
      cachedInputTokens: getSum(same, 'cachedInputTokens'),
      totalOutputTokens: getSum(same, 'outputTokens'),
      totalCostUsd: getSum(same, 'costMicros') / 1e6,
    }))
    .toSorted((a, b) => b.reqs - a.reqs)
