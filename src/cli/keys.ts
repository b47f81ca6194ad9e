/** `sluice keys …`: API keys of model clients. A new key is shown once, here, and can never be shown again. */
import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import { LIMIT_TYPES, LIMIT_WINDOWS } from '../../db/schema/keys.ts'
import { systemClock } from '../lib/clock.ts'
import { iso } from '../lib/iso.ts'
import { systemRandom } from '../lib/random.ts'
import { type ApiKey, toApiKey } from '../model/api-key-view.ts'
import { createKey, listKeys, type StoredKey, updateKey } from '../model/api-keys.ts'
import { NewKey } from '../model/key-input.ts'
import { type KeyState, keyState } from '../model/key-list.ts'
import { readSettings } from '../settings/store.ts'
import {
  type Command,
  cliActor,
  dispatch,
  noArguments,
  printJson,
  readArgs,
  UsageError,
  withFolder,
} from './command.ts'
import { aboutOne } from './find.ts'
import { listing } from './listing.ts'
import { shortTime } from './table.ts'

const create: Command = (args, io) => {
  const { values, positionals } = readArgs(args, {
    name: { type: 'string' },
    model: { type: 'string', multiple: true },
    limit: { type: 'string', multiple: true },
    expires: { type: 'string' },
    json: { type: 'boolean' },
  })
  noArguments(positionals)
  const input = newKey({
    name: values.name,
    allowedModels: values.model,
    limits: values.limit?.map(parseLimit),
    expiresAt: values.expires === undefined ? undefined : parseTime(values.expires),
  })
  return withFolder(io, ({ db }) => {
    const doing = { actor: cliActor(), random: systemRandom }
    const { row, key } = commit(db, (tx) => createKey(tx, input, doing))
    if (values.json) printJson(io, { ...toApiKey(row, doing.actor.at), key })
    else io.stdout(`${key}\n`)
    if (!values.json) io.stderr(`Key "${row.name}" (${row.id}). It is shown only now.\n`)
    if (!readSettings(db).values.apiKeyAuthEnabled) io.stderr(KEYS_OPTIONAL)
    return 0
  })
}

const KEYS_OPTIONAL =
  'Keys are optional: clients on this machine can connect without a key or with an unrecognized one. ' +
  'To require keys: sluice settings set apiKeyAuthEnabled=true\n'

const newKey = (input: Record<string, unknown>): NewKey => {
  if (input.name === undefined) throw new UsageError('Give the key a name: --name laptop')
  const parsed = NewKey.safeParse(input)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new UsageError(`${issue?.path.join('.') || 'The key'}: ${issue?.message}`)
}

const FACTORS: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, g: 1e9 }
const MICROS = 1e6
/** What 1.1 M is off by in floating point, of itself: of 17,000.01 dollars in millionths it is more than a millionth of one. */
const ROUNDING = 2 * Number.EPSILON

/** `total_tokens:daily:5M`, `cost_usd:monthly:20:gpt-5.5`; the last part, a model, may hold colons of its own. */
const parseLimit = (text: string) => {
  const [limitType = '', limitWindow = '', amount = '', ...model] = text.split(':')
  const [, digits, suffix = ''] = /^(\d+(?:\.\d+)?)([kmg]?)$/i.exec(amount) ?? []
  if (!isOneOf(LIMIT_TYPES, limitType) || !isOneOf(LIMIT_WINDOWS, limitWindow) || digits === undefined)
    throw new UsageError(
      `--limit ${text} is not type:window:max[:model]; ` +
        `types are ${LIMIT_TYPES.join(', ')}, windows ${LIMIT_WINDOWS.join(', ')}, max a number such as 500, 20k or 1.5M.`,
    )
  const unit = limitType === 'cost_usd' ? MICROS : 1
  const exact = Number(digits) * (FACTORS[suffix.toLowerCase()] ?? 1) * unit
  const maxValue = Math.round(exact)
  if (Math.abs(exact - maxValue) > exact * ROUNDING)
    throw new UsageError(`--limit ${text} is finer than is counted: whole requests and tokens, millionths of a dollar.`)
  return { limitType, limitWindow, maxValue, modelFilter: model.join(':') }
}

const isOneOf = (values: readonly string[], text: string): boolean => values.includes(text)

/** `Date.parse` alone takes nearly anything: `12` is December 2001. */
const Expiry = z.union([z.iso.date(), z.iso.datetime({ offset: true })])

/** A date alone means its first moment in UTC. */
const parseTime = (text: string): string => {
  if (!Expiry.safeParse(text).success)
    throw new UsageError(`--expires ${text} is not a date; write 2027-01-31 or 2027-01-31T18:00:00Z.`)
  const at = Date.parse(text)
  if (at <= systemClock.now()) throw new UsageError(`--expires ${text} is over; the key would open nothing.`)
  return iso(at)
}

/** As the pages say it, but in the words of the commands. */
const STATES: Record<KeyState, string> = {
  active: 'active',
  off: 'revoked',
  orphaned: 'owner disabled',
  expired: 'expired',
}

const list = listing({
  all: (db) => {
    const now = systemClock.now()
    return listKeys(db).map((row) => toApiKey(row, now))
  },
  headings: ['ID', 'NAME', 'KEY', 'STATUS', 'EXPIRES', 'LAST USED', 'LIMITS'],
  cells: (key) => [
    key.id,
    key.name,
    `${key.keyPrefix}…`,
    STATES[keyState(key)],
    shortTime(key.expiresAt === null ? null : Date.parse(key.expiresAt)),
    shortTime(key.lastUsedAt === null ? null : Date.parse(key.lastUsedAt)),
    key.limits.map(limitText).join(', ') || '-',
  ],
  none: 'No keys yet: sluice keys create --name laptop',
})

const limitText = ({
  limitType,
  limitWindow,
  currentValue,
  maxValue,
  modelFilter,
}: ApiKey['limits'][number]): string => {
  const unit = limitType === 'cost_usd' ? MICROS : 1
  return `${limitType}:${limitWindow}:${currentValue / unit}/${maxValue / unit}${modelFilter ? `:${modelFilter}` : ''}`
}

const KEY = {
  what: 'key',
  foundBy: 'its id, the beginning of it, or its name',
  all: listKeys,
  namesOf: ({ name, keyPrefix }: StoredKey) => [name, keyPrefix],
}

/** Kept, switched off, with its history; the dashboard can delete it. */
const revoke = aboutOne(KEY, (db, key) => {
  commit(db, (tx) => updateKey(tx, key.id, { isActive: false }, { actor: cliActor(), random: systemRandom }))
  return `Revoked "${key.name}" (${key.id})`
})

export const keys: Command = dispatch('keys', { create, list, revoke })
