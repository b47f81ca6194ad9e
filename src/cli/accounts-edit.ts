/** `sluice accounts edit`: routing, caps, owner, window start and reset rule of an account. */
import { commit } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import { displayName, editAccount, getUsage, listAccounts } from '../model/accounts/accounts.ts'
import { windowStartRefusal } from '../model/accounts/preserve-floors.ts'
import { ResetRuleFields } from '../model/accounts/reset-rule-fields.ts'
import { enableWindowStart } from '../model/accounts/window-starts.ts'
import { ownerFrom, type RoutingOptions, routingFrom } from './account-options.ts'
import { ACCOUNT } from './accounts.ts'
import { cliActor, type Run, UsageError, withFolder } from './command.ts'
import { findOne } from './find.ts'

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
