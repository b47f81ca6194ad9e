/** Plans an import: what each item in the files would change. Nothing is written. */
import type { Db } from '../../../db/commit.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Sealer } from '../../lib/seal.ts'
import { inSlices } from '../../lib/slices.ts'
import type { Settings } from '../../settings/schema.ts'
import { openTokens } from '../accounts/account-tokens.ts'
import { type AccountRow, displayName, listAccounts } from '../accounts/accounts.ts'
import { judgeTokens } from '../accounts/import-preflight.ts'
import type { NewEndpoint } from '../egress/input.ts'
import type { FoundHistory } from './codex-lb-history.ts'
import {
  type Found,
  type FoundAccount,
  type FoundKey,
  type FoundSetting,
  type FoundSource,
  foreignId,
  getLiveWarning,
} from './found.ts'
import { planOthers } from './plan-others.ts'
import { findKnownProxies, type KnownProxies } from './proxies.ts'
import { Seats } from './seats.ts'
import type { Format, ItemKind } from './words.ts'

/** `newer` replaces what is stored; `same` and `older` change nothing. */
export type PlanVerdict = 'new' | 'same' | 'newer' | 'older' | 'broken'

/** The data needed to import an item. */
export type ItemContent =
  | { kind: 'account'; found: FoundAccount; existingId: string | null; foreignIds: readonly string[] }
  | { kind: 'key'; key: FoundKey; source: number }
  | { kind: 'source'; source: FoundSource }
  | { kind: 'proxy'; endpoint: NewEndpoint; key: string | null }
  | { kind: 'setting'; setting: FoundSetting; source: number }
  | { kind: 'firewall'; address: string }
  | { kind: 'history'; history: FoundHistory; source: number }

export interface PlanItem {
  id: string
  kind: ItemKind
  label: string
  verdict: PlanVerdict
  /** An explanation in sentences. Null if the verdict needs none. */
  reason: string | null
  /** The index of its file in `sources`. */
  source: number
  /** Null if there is nothing to import, or after the import, when secrets are dropped. */
  content: ItemContent | null
  result: ItemResult | null
}

/** `joined`: it is the same as an existing account or as another item of the import. */
export interface ItemResult {
  outcome: 'imported' | 'joined' | 'left_out'
  reason: string | null
  /** Null for items that are not accounts. */
  accountId: string | null
}

export interface PlanSource {
  format: Format
  name: string
  notes: readonly string[]
}

export interface ImportPlan {
  sources: readonly PlanSource[]
  items: readonly PlanItem[]
  /** Account IDs of the other programs → ours, for accounts that already exist. */
  accountIds: ReadonlyMap<string, string>
  /** Keys of imported outbound proxies → the pools made of them. */
  poolIds: ReadonlyMap<string, string>
  /** Those to which new accounts are assigned. */
  knownProxies: KnownProxies
}

export type DraftItem = Omit<PlanItem, 'id' | 'result'>

export interface Planning {
  sealer: Sealer
  clock: Clock
  settings: Settings
  /** Whether the actor may assign accounts to outbound proxies that are already here. */
  assignsProxies: boolean
}

export const makePlan = async (db: Db, files: readonly Found[], planning: Planning): Promise<ImportPlan> => {
  const knownProxies = await findKnownProxies(db, files)
  const accounts = await planAccounts(db, files, { ...planning, knownProxies })
  const items = [...accounts, ...(await planOthers(db, files, planning))]
  return {
    sources: files.map(({ format, name, notes, accounts }) => ({
      format,
      name,
      notes: accounts.length > 0 && format !== 'litellm' ? [getLiveWarning(format), ...notes] : notes,
    })),
    items: items.map((item, index) => ({ ...item, id: String(index), result: null })),
    accountIds: new Map(items.flatMap(({ content }) => (content?.kind === 'account' ? getStoredIds(content) : []))),
    poolIds: new Map(),
    knownProxies: planning.assignsProxies ? knownProxies : new Map(),
  }
}

const getStoredIds = ({ existingId, foreignIds }: Extract<ItemContent, { kind: 'account' }>): [string, string][] =>
  existingId === null ? [] : foreignIds.map((id) => [id, existingId])

/** The items that are imported by default. */
export const isInAll = ({ kind, verdict }: Pick<PlanItem, 'kind' | 'verdict'>): boolean =>
  (kind === 'account' || kind === 'key' || kind === 'source') && (verdict === 'new' || verdict === 'newer')

interface Group {
  best: DraftItem
  at: number
  foreignIds: string[]
}

const planAccounts = async (
  db: Db,
  files: readonly Found[],
  planning: Planning & { knownProxies: KnownProxies },
): Promise<DraftItem[]> => {
  const rows = await listAccounts(db)
  const stored = new Seats<AccountRow>()
  for (const row of rows) stored.add(row, row)
  const tokens = new Map<string, string>()
  const isExchangeNeeded = files.some(({ accounts }) => accounts.some(({ refreshToken }) => refreshToken !== null))
  if (isExchangeNeeded)
    for (const row of rows) tokens.set(openTokens(planning.sealer, row).refreshToken, displayName(row))
  const groups = new Seats<Group>()
  const entries = files.flatMap(({ accounts }, source) =>
    accounts.map((account) => ({ account: withUniqueProxy(account, source), source })),
  )
  // in slices: each stored token is decrypted for the comparison
  return inSlices(
    planning.clock,
    entries,
    async (slice) =>
      slice.map(({ account, source }) => planAccount(account, source, { stored, groups, tokens, planning, files })),
    100,
  )
}

interface Comparing {
  stored: Seats<AccountRow>
  groups: Seats<Group>
  /** Refresh token → the name of the account or item that has it. */
  tokens: Map<string, string>
  planning: Planning & { knownProxies: KnownProxies }
  files: readonly Found[]
}

const planAccount = (found: FoundAccount, source: number, comparing: Comparing): DraftItem => {
  const base = { kind: 'account' as const, label: found.label, source }
  if (found.account) return compare(found, source, comparing)
  if (found.refreshToken === null)
    return { ...base, verdict: 'broken', reason: found.problem ?? 'It has no tokens.', content: null }
  const known = comparing.tokens.get(found.refreshToken)
  if (known) return { ...base, verdict: 'same', reason: `${known} has the same refresh token.`, content: null }
  comparing.tokens.set(found.refreshToken, found.label)
  const content = { kind: 'account' as const, found, existingId: null, foreignIds: getForeignIds(found, source) }
  return { ...base, verdict: 'new', reason: getSentences(ONLY_REFRESH, found, comparing), content }
}

const withUniqueProxy = (account: FoundAccount, source: number): FoundAccount => {
  const { proxyKey } = account.extras
  if (proxyKey === undefined) return account
  return { ...account, extras: { ...account.extras, proxyKey: foreignId(source, proxyKey) } }
}

const ONLY_REFRESH =
  'It has only a refresh token. The import exchanges it with OpenAI, one a second, and the other program is signed out.'

const compare = (found: FoundAccount, source: number, comparing: Comparing): DraftItem => {
  const { stored, groups, tokens, planning, files } = comparing
  const account = found.account! // as the caller checked
  const { identity, lastRefreshAt } = account
  const row = stored.find(identity) ?? null
  const { verdict, reason } = judgeTokens(account, row, { sealer: planning.sealer, now: planning.clock.now() })
  const completed = row ? { ...found, account: { ...account, identity: asStored(identity, row) } } : found
  const foreignIds = getForeignIds(found, source)
  const item: DraftItem = {
    kind: 'account',
    label: found.label,
    verdict: verdict === 'undated' ? 'older' : verdict,
    reason: getSentences(
      reason ?? (row && verdict === 'newer' ? `Replaces the tokens of ${displayName(row)}.` : null),
      found,
      row ? null : comparing,
    ),
    source,
    content: { kind: 'account', found: completed, existingId: row?.id ?? null, foreignIds },
  }
  tokens.set(account.tokens.refreshToken, found.label)
  const rival = groups.find(identity)
  const at = lastRefreshAt ?? Number.NEGATIVE_INFINITY
  if (!rival) {
    groups.add(identity, { best: item, at, foreignIds: [...foreignIds] })
    return item
  }
  groups.add(identity, rival) // this identity may be more complete
  return settle(item, at, { rival, foreignIds, files })
}

/** Two items are for the same account: imports the newer one, with the IDs and details of both. */
const settle = (
  item: DraftItem,
  at: number,
  { rival, foreignIds, files }: { rival: Group; foreignIds: readonly string[]; files: readonly Found[] },
): DraftItem => {
  rival.foreignIds.push(...foreignIds)
  const isBetter = at > rival.at
  const [winner, loser] = isBetter ? [item, rival.best] : [rival.best, item]
  const [kept, dropped] = [winner.content, loser.content]
  if (kept?.kind === 'account' && dropped?.kind === 'account')
    winner.content = {
      ...kept,
      found: { ...kept.found, extras: { ...dropped.found.extras, ...kept.found.extras } },
      foreignIds: rival.foreignIds,
    }
  loser.verdict = 'same'
  loser.content = null
  loser.reason = `The same account as in ${files[winner.source]?.name ?? 'another file'}, whose tokens are at least as new.`
  if (isBetter) {
    rival.best = item
    rival.at = at
  }
  return item
}

/** `proxies`: where its outbound proxy may be. Null for existing accounts, which are not assigned to it. */
const getSentences = (
  reason: string | null,
  { extras }: FoundAccount,
  proxies: Pick<Comparing, 'files' | 'planning'> | null,
): string | null => {
  const state = extras.state && STATE_REASONS[extras.state]
  const proxy = extras.proxyKey && proxies && getProxyReason(extras.proxyKey, proxies)
  return [reason, state, proxy].filter(Boolean).join(' ') || null
}

const getProxyReason = (proxyKey: string, { files, planning }: Pick<Comparing, 'files' | 'planning'>): string => {
  const known = planning.knownProxies.get(proxyKey)
  if (known && !planning.assignsProxies)
    return `You may not assign it to its proxy, which is already here as ${known.name}, so it is imported paused.`
  if (known) return `It is assigned to the proxy ${known.name}, which is already here.`
  const proxy = files
    .flatMap(({ proxies }, source) => proxies.map((one) => ({ ...one, source })))
    .find(({ key, source }) => key !== null && foreignId(source, key) === proxyKey)
  return proxy
    ? `It uses the proxy ${proxy.endpoint.name}. Import that proxy as well, otherwise the account is imported paused.`
    : 'Its proxy cannot be imported, so it is imported paused.'
}

const STATE_REASONS = {
  paused: 'It was paused and stays paused.',
  reauth_required: 'It needs sign-in.',
  deactivated: 'It was deactivated by OpenAI.',
}

const getForeignIds = (found: FoundAccount, source: number): string[] =>
  found.foreignId === null ? [] : [foreignId(source, found.foreignId)]

/** Completes the identity with that of `row`, so that the import finds `row`. */
const asStored = <I extends AccountRow | NonNullable<FoundAccount['account']>['identity']>(
  identity: I,
  row: AccountRow,
): I => ({
  ...identity,
  email: row.email,
  chatgptAccountId: row.chatgptAccountId ?? identity.chatgptAccountId,
  chatgptUserId: row.chatgptUserId ?? identity.chatgptUserId,
})
