/** `sluice accounts edit`: name, routing, tags, caps, owner, window start and reset rule of an account. */

import { z } from 'zod'
import { commit, type Db } from '../../db/commit.ts'
import { ROUTING_POLICIES } from '../../db/schema/accounts.ts'
import { AppError } from '../errors.ts'
import { Tags } from '../model/accounts/account-tags.ts'
import { type AccountEdit, displayName, editAccount, getUsage, listAccounts } from '../model/accounts/accounts.ts'
import { windowStartRefusal } from '../model/accounts/preserve-floors.ts'
import { ResetRuleFields } from '../model/accounts/reset-rule-fields.ts'
import { enableWindowStart } from '../model/accounts/window-starts.ts'
import { ACCOUNT } from './accounts.ts'
import { cliActor, type Run, UsageError, withFolder } from './command.ts'
import { findOne } from './find.ts'
import { USER } from './users.ts'

interface EditOptions extends RoutingOptions {
  windowStart?: string
  resetPolicy?: string
  keepCredits?: string
  minBlocked?: string
  percent?: string
}

const NAMES = {
  resetPolicy: '--reset-policy',
  keepCredits: '--keep-credits',
  minBlockedMinutes: '--min-blocked',
  percent: '--percent',
} as const

export const editOne: Run<EditOptions> = (io, [wanted = ''], options) => {
  const windowStart = onOrOff(options.windowStart)
  const { resetPolicy, keepCredits, minBlocked, percent } = options
  const rule = ruleFrom({ resetPolicy, keepCredits, minBlockedMinutes: minBlocked, percent })
  const change = { ...rule, ...routingFrom(options) }
  if (windowStart === null && options.owner === undefined && Object.keys(change).length === 0)
    throw new UsageError('Nothing to change. Give at least one option, such as --reset-policy.')
  return withFolder(io, async ({ db }) => {
    const all = await listAccounts(db)
    const account = findOne(ACCOUNT, all, wanted)
    const actor = cliActor()
    if (windowStart) {
      const usage = (await getUsage(db)).get(account.id) ?? null
      // Only the server knows when foreground requests used the account.
      const refusal = windowStartRefusal({ ...account, usage, lastForegroundAt: 0 }, all, actor.at)
      if (refusal !== null) throw new AppError('window_start_refused', { message: refusal })
    }
    await commit(db, async (tx) => {
      await editAccount(tx, account.id, { ...change, ...(await ownerFrom(tx, options)) }, actor)
      if (windowStart !== null) await enableWindowStart(tx, account.id, windowStart, actor)
    })
    io.stdout(`Changed ${displayName(account)}.\n`)
    return 0
  })
}

const onOrOff = (text: string | undefined): boolean | null => {
  if (text === undefined) return null
  if (text === 'on' || text === 'off') return text === 'on'
  throw new UsageError(`--window-start must be on or off, not "${text}".`)
}

const ruleFrom = (given: Partial<Record<keyof typeof NAMES, string | undefined>>) => {
  const values = Object.entries(given).flatMap(([name, text]) => {
    if (text === undefined) return []
    const isNumber = name !== 'resetPolicy' && /^\d+$/.test(text)
    return [[name, text === 'default' ? null : isNumber ? Number(text) : text] as const]
  })
  const parsed = ResetRuleFields.safeParse(Object.fromEntries(values))
  if (parsed.success) return parsed.data
  const name = String(parsed.error.issues[0]?.path[0]) as keyof typeof NAMES // as: the schema has these members only
  throw new UsageError(`${NAMES[name]} cannot be "${given[name]}". "sluice accounts edit --help" shows what it can be.`)
}

interface RoutingOptions {
  alias?: string
  policy?: string
  tag?: readonly string[]
  removeTags?: true
  position?: string
  max5h?: string
  maxWeek?: string
  owner?: string
  reserveForOwner?: string
}

/** What was given, without the owner. Throws `UsageError`. */
const routingFrom = (options: RoutingOptions): AccountEdit => {
  const { alias, policy, tag, removeTags, position, max5h, maxWeek, reserveForOwner } = options
  if (removeTags && tag) throw new UsageError('Use either --tag or --remove-tags.')
  return {
    ...(alias !== undefined && { alias: alias.trim() || null }),
    ...(policy !== undefined && {
      routingPolicy: read(z.enum(ROUTING_POLICIES), '--policy', policy, `one of ${ROUTING_POLICIES.join(', ')}`),
    }),
    ...(tag && { tags: read(Tags, '--tag', tag, 'of 1 to 40 characters, given at most 20 times') }),
    ...(removeTags && { tags: [] }),
    ...(position !== undefined && {
      position: read(number(1_000_000), '--position', position, 'a place from 1, or none'),
    }),
    ...(max5h !== undefined && { maxUsedPercentPrimary: read(number(100), '--max-5h', max5h, PERCENT) }),
    ...(maxWeek !== undefined && { maxUsedPercentSecondary: read(number(100), '--max-week', maxWeek, PERCENT) }),
    ...(reserveForOwner !== undefined && {
      reserveForOwner: read(z.enum(['yes', 'no']), '--reserve-for-owner', reserveForOwner, 'yes or no') === 'yes',
    }),
  }
}

/** Throws `not_found`, and `UsageError` for several matches. */
const ownerFrom = async (db: Db, { owner }: RoutingOptions): Promise<AccountEdit> =>
  owner === undefined ? {} : { ownerUserId: owner === 'none' ? null : findOne(USER, await USER.all(db), owner).id }

const PERCENT = 'a percentage from 1 to 100, or none'

const number = (max: number) =>
  z.union([z.literal('none').transform(() => null), z.coerce.number().int().min(1).max(max)])

const read = <S extends z.ZodType>(schema: S, option: string, value: unknown, hint: string): z.output<S> => {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new UsageError(`${option} must be ${hint}.`)
}
