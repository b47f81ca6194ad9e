/** Stores one account of an import: a new one with the details from its file, or new tokens for an existing one. */
import type { Tx } from '../../../db/commit.ts'
import type { Random } from '../../lib/random.ts'
import type { Sealer } from '../../lib/seal.ts'
import { importAccount, renewAccount } from '../accounts/account-intake.ts'
import { ACTIVE, type AccountState, nextState } from '../accounts/account-state.ts'
import { replaceTags, Tags } from '../accounts/account-tags.ts'
import { type AccountRow, displayName, getAccount, pauseAccount } from '../accounts/accounts.ts'
import { type Actor, append } from '../audit/audit.ts'
import { bindAccount } from '../egress/pools.ts'
import type { AccountExtras } from './found.ts'
import type { ItemContent, ItemResult } from './plan.ts'
import { createOwnPool, findProxy, type Routes } from './proxies.ts'

interface Storing extends Routes {
  sealer: Sealer
  random: Random
  actor: Actor
  isPaused: boolean
  replaces: boolean
}

export const storeAccount = async (
  tx: Tx,
  { found }: Extract<ItemContent, { kind: 'account' }>,
  { sealer, random, actor, isPaused, replaces, ...routes }: Storing,
): Promise<ItemResult> => {
  const account = found.account! // exchanged before, where the file has none
  const { extras } = found
  const proxy = extras.proxyKey === undefined ? null : await findProxy(tx, extras.proxyKey, routes)
  const lacksProxy = extras.proxyKey !== undefined && proxy === null
  const state = getState(extras, { isPaused: isPaused || lacksProxy, at: actor.at })
  const isHeld = lacksProxy && state.status === 'paused'
  const initial = { ...getColumns(extras), state: isHeld ? { ...state, evidence: NO_PROXY } : state }
  const doing = { sealer, random, actor, initial, announcesLater: true }
  const { isNew, tokensKept, ...row } = await importAccount(tx, account, doing)
  if (isNew) {
    const tags = Tags.safeParse(extras.tags ?? [])
    if (tags.success && tags.data.length > 0) await replaceTags(tx, row.id, tags.data)
    if (proxy) {
      const poolId = 'poolId' in proxy ? proxy.poolId : await createOwnPool(tx, proxy.endpoint, { actor, random })
      await bindAccount(tx, row.id, poolId, actor)
    }
    return { outcome: 'imported', reason: isHeld ? NO_PROXY : lacksProxy ? ALSO_NO_PROXY : null, accountId: row.id }
  }
  if (tokensKept && !replaces) return joined(row, `${displayName(row)} keeps its tokens.`)
  if (tokensKept) await replaceTokens(tx, row, { account, sealer, actor })
  if (isPaused) await pauseIfPossible(tx, row.id, actor)
  return joined(row, `${displayName(row)} has new tokens.`)
}

/** It must not connect without the proxy that it used before. */
const NO_PROXY = 'Paused because its outbound proxy was not imported.'
/** For accounts that are not paused, because they are not used anyway. */
const ALSO_NO_PROXY = 'Its outbound proxy was not imported.'

const joined = ({ id }: AccountRow, reason: string): ItemResult => ({ outcome: 'joined', reason, accountId: id })

const replaceTokens = async (
  tx: Tx,
  row: AccountRow,
  { account, sealer, actor }: Parameters<typeof renewAccount>[3] & { account: Parameters<typeof renewAccount>[2] },
): Promise<void> => {
  await renewAccount(tx, row, account, { sealer, actor })
  await append(tx, actor, 'account_imported', {
    target: row.id,
    details: { email: row.email, renewed: true, replaced: true },
  })
}

const MAX_ALIAS = 255

const getColumns = ({ alias, routingPolicy, securityWorkAuthorized }: AccountExtras) => ({
  ...(alias && { alias: alias.slice(0, MAX_ALIAS) }),
  ...(routingPolicy && { routingPolicy }),
  ...(securityWorkAuthorized && { securityWorkAuthorized }),
})

/** The state stored by the other program. It is not checked with OpenAI. */
const getState = ({ state }: AccountExtras, { isPaused, at }: { isPaused: boolean; at: number }): AccountState => {
  if (state === 'reauth_required' || state === 'deactivated') {
    const code = state === 'deactivated' ? 'account_deactivated' : 'account_auth_invalidated'
    return nextState(ACTIVE, {
      kind: 'auth_failed',
      at,
      code,
      evidence: 'This state was imported from another program.',
    })
  }
  return state === 'paused' || isPaused ? nextState(ACTIVE, { kind: 'pause', at }) : ACTIVE
}

/** Accounts that need sign-in are not paused, because they are not used anyway. */
const pauseIfPossible = async (tx: Tx, id: string, actor: Actor): Promise<void> => {
  const { status } = await getAccount(tx, id)
  if (status !== 'reauth_required' && status !== 'deactivated') await pauseAccount(tx, id, actor)
}
