/** Carries out a plan: accounts first, because keys refer to them. Every change is a commit with its audit row. */
import { commit, type Db, notice, type Tx } from '../../../db/commit.ts'
import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import type { Random } from '../../lib/random.ts'
import type { Sealer } from '../../lib/seal.ts'
import { inSlices } from '../../lib/slices.ts'
import type { Settings } from '../../settings/schema.ts'
import type { ImportedAccount } from '../accounts/auth-json.ts'
import type { Actor } from '../audit/audit.ts'
import { createEndpoint } from '../egress/endpoints.ts'
import { createPool } from '../egress/pools.ts'
import { addEntry, listEntries } from '../firewall.ts'
import { importKey } from '../keys/api-keys.ts'
import { createSource } from '../sources/source-rows.ts'
import type { ViewScope } from '../users/view-scope.ts'
import { storeAccount } from './apply-account.ts'
import { storeHistory } from './apply-history.ts'
import { foreignId } from './found.ts'
import { type ImportPlan, type ItemContent, type ItemResult, isInAll, type PlanItem } from './plan.ts'
import type { KnownProxies } from './proxies.ts'
import type { ItemKind } from './words.ts'

export interface Choice {
  /**
   * The IDs of the items. `all` means new and newer accounts, keys and model sources, but not settings, firewall,
   * proxies and request logs.
   */
  items: 'all' | readonly string[]
  /** Whether to pause the accounts that get tokens. */
  isPaused: boolean
  /** Whether to replace stored tokens even if they may be as new or newer. */
  replaces: boolean
  /** API keys of model sources, by item. */
  keys?: Readonly<Record<string, string>>
}

export interface Applying {
  db: Db
  sealer: Sealer
  random: Random
  clock: Clock
  actor: () => Actor
  scope: ViewScope
  /** Exchanges a refresh token for an account. Throws an Error with a message for the user. */
  exchange: (refreshToken: string) => Promise<ImportedAccount>
  /** The most refresh tokens that one import exchanges. */
  maxExchanges: number
  /** Stores settings with their audit row, and checks the rights of the actor. */
  storeSettings: (tx: Tx, patch: Partial<Settings>) => Promise<void>
  /** The normalized address of a model source, or the reason it is not allowed. */
  getSourceAddress: (text: string) => Promise<{ baseUrl: string } | { problem: string }>
  /** Called after each slice. */
  onProgress?: (done: number, total: number) => void
}

/** The chosen items that have not been imported yet. Throws `validation_error` for one that does not exist. */
export const chosenItems = ({ items }: ImportPlan, choice: Pick<Choice, 'items'>): PlanItem[] => {
  if (choice.items === 'all') return items.filter((item) => isInAll(item) && item.content !== null)
  const byId = new Map(items.map((item) => [item.id, item]))
  return [...new Set(choice.items)].flatMap((id) => {
    const item = byId.get(id)
    if (!item)
      throw new AppError('validation_error', {
        param: 'items',
        details: { fields: { items: [`${id} is not an item of this import`] } },
      })
    return item.content === null ? [] : [item]
  })
}

/** Returns the plan with the results. An item is imported once; items left over can be imported later. */
export const applyPlan = async (plan: ImportPlan, choice: Choice, applying: Applying): Promise<ImportPlan> => {
  const chosen = chosenItems(plan, choice)
  const run: Run = {
    ...applying,
    ...choice,
    ids: new Map(plan.accountIds),
    pools: new Map(plan.poolIds),
    known: plan.knownProxies,
    results: new Map(),
    exchanges: 0,
  }
  const of = (kind: ItemKind) => chosen.filter((item) => item.kind === kind)
  try {
    for (const item of of('proxy')) await step(run, item, storeProxy)
    await importAccounts(run, of('account'))
    for (const item of of('key')) await step(run, item, storeKey)
    for (const item of of('source')) await step(run, item, storeSource)
    await storeAll(run, [...of('setting'), ...of('firewall')])
    for (const item of of('history')) await step(run, item, storeLog)
  } finally {
    await commit(applying.db, async (tx) => notice(tx, 'accounts'))
  }
  return {
    ...plan,
    items: plan.items.map((item) => withResult(item, run, choice)),
    accountIds: run.ids,
    poolIds: run.pools,
  }
}

interface Run extends Applying, Choice {
  /** Account IDs of the other program → ours. */
  ids: Map<string, string>
  /** Keys of outbound proxies → the pools made of them. */
  pools: Map<string, string>
  known: KnownProxies
  results: Map<string, ItemResult>
  exchanges: number
}

const withResult = (item: PlanItem, { results }: Run, { items }: Choice): PlanItem => {
  const result = results.get(item.id) ?? item.result
  if (result) return { ...item, result, ...(result.outcome !== 'left_out' && { content: null }) }
  if (items !== 'all') return item
  const isSame = item.kind === 'account' && item.verdict === 'same'
  return { ...item, result: { outcome: isSame ? 'joined' : 'left_out', reason: getWhyLeft(item), accountId: null } }
}

const getWhyLeft = ({ kind, verdict, reason, content }: PlanItem): string | null => {
  if (content !== null && verdict !== 'same' && verdict !== 'older') return NAMED[kind] ?? reason
  return reason
}

const NAMED: Partial<Record<ItemKind, string>> = {
  setting: 'Settings are imported only when you choose them.',
  firewall: 'The firewall list is imported only when you choose it.',
  proxy: 'Outbound proxies are imported only when you choose them.',
  history: 'Request logs are imported only when you choose them.',
}

const importAccounts = async (run: Run, items: readonly PlanItem[]): Promise<void> => {
  const [exchanged, complete] = [items.filter(needsExchange), items.filter((item) => !needsExchange(item))]
  let done = 0
  await inSlices(run.clock, complete, async (slice) => {
    const results = await commit(run.db, (tx) => mapInOrder(slice, (item) => storeOne(run, tx, item)))
    for (const [index, item] of slice.entries()) record(run, item, results[index]!) // one for each
    done += slice.length
    run.onProgress?.(done, items.length)
    return []
  })
  for (const item of exchanged) {
    await exchangeOne(run, item)
    run.onProgress?.(++done, items.length)
  }
}

const needsExchange = ({ content }: PlanItem): boolean => content?.kind === 'account' && content.found.account === null

type AccountContent = Extract<ItemContent, { kind: 'account' }>

const storeOne = (run: Run, tx: Tx, { content }: PlanItem): Promise<ItemResult> =>
  storeAccount(tx, content as AccountContent, { ...run, actor: run.actor() }) // as: of this kind

const record = (run: Run, item: PlanItem, result: ItemResult): void => {
  run.results.set(item.id, result)
  if (item.content?.kind === 'account' && result.accountId)
    for (const foreign of item.content.foreignIds) run.ids.set(foreign, result.accountId)
}

const EXCHANGE_PAUSE_MS = 1000

/** The exchange uses up the old refresh token, so each account is stored before the next exchange. */
const exchangeOne = async (run: Run, item: PlanItem): Promise<void> => {
  const content = item.content as AccountContent // as: of this kind
  const { refreshToken } = content.found
  if (run.exchanges >= run.maxExchanges)
    return record(
      run,
      item,
      leftOut(
        `One import exchanges ${run.maxExchanges} refresh tokens. Import the rest afterwards, or use the command line.`,
      ),
    )
  if (run.exchanges > 0) await run.clock.sleep(EXCHANGE_PAUSE_MS)
  run.exchanges += 1
  let account: ImportedAccount
  try {
    account = await run.exchange(refreshToken ?? '')
  } catch (err) {
    return record(run, item, leftOut(err instanceof Error ? err.message : String(err)))
  }
  const found = { ...content.found, account, label: account.identity.email }
  // In the plan itself: if the import fails later, the next try must not exchange the spent token again.
  item.content = { ...content, found }
  record(run, item, await storeExchanged(run, item))
}

const STORE_PAUSES_MS = [0, 250, 1000, 4000]

/** Retries, because no one else has the new tokens. Throws the last error. */
const storeExchanged = async (run: Run, item: PlanItem): Promise<ItemResult> => {
  let problem: unknown
  for (const pauseMs of STORE_PAUSES_MS) {
    if (pauseMs > 0) await run.clock.sleep(pauseMs)
    try {
      return await commit(run.db, (tx) => storeOne(run, tx, item))
    } catch (err) {
      problem = err
    }
  }
  throw problem
}

const leftOut = (reason: string): ItemResult => ({ outcome: 'left_out', reason, accountId: null })

const imported = (reason: string | null = null): ItemResult => ({ outcome: 'imported', reason, accountId: null })

/** Stores the item in one commit. If there is a conflict, the item is left out with the reason. */
const step = async (
  run: Run,
  item: PlanItem,
  store: (run: Run, content: ItemContent, id: string) => Promise<ItemResult>,
): Promise<void> => {
  try {
    run.results.set(item.id, await store(run, item.content!, item.id)) // chosen items have content
  } catch (err) {
    if (!(err instanceof AppError) || !CONFLICTS.includes(err.code)) throw err
    run.results.set(item.id, leftOut(err.message))
  }
}

const CONFLICTS: readonly string[] = ['name_taken', 'validation_error', 'invalid_model_source_payload']

const storeProxy = async (run: Run, content: ItemContent): Promise<ItemResult> => {
  if (content.kind !== 'proxy') return imported()
  const { endpoint, key } = content
  const doing = { ...run, actor: run.actor() }
  const poolId = await commit(run.db, async (tx) => {
    const { id } = await createEndpoint(tx, endpoint, doing)
    return key && (await createPool(tx, { name: endpoint.name, endpointIds: [id], isActive: true }, doing)).id
  })
  if (key && poolId) run.pools.set(key, poolId)
  return imported()
}

const storeKey = async (run: Run, content: ItemContent): Promise<ItemResult> => {
  if (content.kind !== 'key') return imported()
  const { key, source } = content
  const wanted = key.foreignAccountIds
  const assigned = wanted?.flatMap((id) => run.ids.get(foreignId(source, id)) ?? []) ?? null
  const secret = { keyHash: key.hash, keyPrefix: key.prefix }
  const input = { ...key.input, assignedAccountIds: assigned }
  const { isActive, limits } = key
  const id = await commit(run.db, (tx) =>
    importKey(tx, { input, secret, isActive, limits }, { actor: run.actor(), scope: run.scope, random: run.random }),
  )
  if (id === null) return leftOut('This key is already here.')
  const missing = (wanted?.length ?? 0) - (assigned?.length ?? 0)
  return imported(
    missing > 0 ? `${missing} of its ${wanted?.length} accounts are not imported, so it cannot use them.` : null,
  )
}

const storeSource = async (run: Run, content: ItemContent, id: string): Promise<ItemResult> => {
  if (content.kind !== 'source') return imported()
  const { input, keyVariable } = content.source
  const address = await run.getSourceAddress(input.baseUrl)
  if ('problem' in address) return leftOut(`Its address is not allowed. ${address.problem}`)
  const doing = { ...run, actor: run.actor(), requireConfirmation: () => {} } // asked for before
  const apiKey = run.keys?.[id]?.trim()
  const entered = apiKey ? { apiKey, isEnabled: true } : {}
  await commit(run.db, (tx) => createSource(tx, { ...input, ...address, ...entered }, doing))
  return imported(keyVariable && !apiKey ? 'It is disabled. Enter its API key and enable it.' : null)
}

const storeLog = async (run: Run, content: ItemContent): Promise<ItemResult> => {
  if (content.kind !== 'history') return imported()
  const { history, source } = content
  const accountOf = (id: string) => run.ids.get(foreignId(source, id)) ?? null
  await storeHistory(history, { ...run, actor: run.actor(), accountOf })
  return imported()
}

/** Settings and firewall in one commit. */
const storeAll = async (run: Run, items: readonly PlanItem[]): Promise<void> => {
  if (items.length === 0) return
  await commit(run.db, async (tx) => {
    const patch: Record<string, unknown> = {}
    const known = new Set((await listEntries(tx)).map(({ ipAddress }) => ipAddress))
    for (const { id, content } of items) {
      if (content?.kind === 'firewall' && !known.has(content.address)) await addEntry(tx, content.address, run.actor())
      if (content?.kind === 'setting') {
        const { name, value } = content.setting
        const account = name === 'singleAccountId' ? run.ids.get(foreignId(content.source, String(value))) : undefined
        if (name !== 'singleAccountId') patch[name] = value
        else if (account) patch[name] = account
        else run.results.set(id, leftOut('This account is not imported.'))
      }
    }
    if (Object.keys(patch).length > 0) await run.storeSettings(tx, patch as Partial<Settings>) // as: validated when read
  })
  for (const { id } of items) if (!run.results.has(id)) run.results.set(id, imported())
}
