/** `sluice keys …`: API keys of clients. A new key is shown only once. */
import { commit, type Db } from '../../db/commit.ts'
import { systemClock } from '../lib/clock.ts'
import { systemRandom } from '../lib/random.ts'
import { listAccounts } from '../model/accounts/accounts.ts'
import { Catalog } from '../model/catalog/catalog.ts'
import { type ApiKey, toApiKey } from '../model/keys/api-key-view.ts'
import {
  createKey,
  deleteKey,
  type IssuedKey,
  listKeys,
  regenerateKey,
  type StoredKey,
  updateKey,
} from '../model/keys/api-keys.ts'
import { KeyPatch, NewKey } from '../model/keys/key-input.ts'
import { type KeyState, keyState } from '../model/keys/key-list.ts'
import { readSettings } from '../settings/store.ts'
import { type CliIo, cliActor, printJson, type Run, UsageError, withFolder, withNewFolder } from './command.ts'
import { commandForOne, findOne, type Kind } from './find.ts'
import { checked, getFields, type KeyOptions, MICROS } from './key-options.ts'
import { listing } from './listing.ts'
import { byName, shortTime } from './table.ts'

interface Json {
  json?: true
}

export const create: Run<KeyOptions & Json> = (io, _args, { json, ...options }) => {
  if (options.name === undefined) throw new UsageError('Give the key a name: --name laptop')
  const input = checked(NewKey, getFields(options))
  return withNewFolder(io, async ({ db }) => {
    const issued = await commit(db, (tx) => createKey(tx, input, doing()))
    show(io, issued, { json, sentence: `Created the key "${issued.row.name}".` })
    await warnOfModels(io, db, input.allowedModels ?? [])
    if (!(await readSettings(db)).values.apiKeyAuthEnabled) io.stderr(KEYS_OPTIONAL)
    return 0
  })
}

const doing = () => ({ actor: cliActor(), scope: 'all' as const, random: systemRandom })

/** Prints only the key to standard output, for scripts. */
const show = (io: CliIo, { row, key }: IssuedKey, { json, sentence }: { json?: true; sentence: string }): void => {
  if (json) printJson(io, { ...toApiKey(row, systemClock.now()), key })
  else io.stdout(`${key}\n`)
  if (!json) io.stderr(`${sentence} Copy it now. You cannot see it again.\n`)
}

const KEYS_OPTIONAL =
  'Keys are optional: clients on this machine can connect without a key or with an unrecognized one. ' +
  'To require keys: sluice settings set apiKeyAuthEnabled=true\n'

const MAX_NAMED = 12

/** Warns only when accounts have reported their models; before that any name may be valid. */
const warnOfModels = async (io: CliIo, db: Db, models: readonly string[]): Promise<void> => {
  const catalog = await Catalog.open(db)
  const listed = new Set((await listAccounts(db)).flatMap(({ id }) => [...(catalog.getModels(id) ?? [])]))
  const unlisted = models.filter((model) => !listed.has(model))
  if (listed.size === 0 || unlisted.length === 0) return
  const known = [...listed].toSorted(byName)
  const more = known.length > MAX_NAMED ? ` and ${known.length - MAX_NAMED} more` : ''
  io.stderr(
    `Warning: no account offers ${unlisted.map((model) => `"${model}"`).join(', ')}. ` +
      `Available models: ${known.slice(0, MAX_NAMED).join(', ')}${more}.\n`,
  )
}

/** As used by the commands. */
const STATES: Record<KeyState, string> = {
  active: 'active',
  off: 'revoked',
  orphaned: 'owner disabled',
  expired: 'expired',
}

export const list = listing({
  all: async (db) => {
    const now = systemClock.now()
    return (await listKeys(db, 'all')).map((row) => toApiKey(row, now))
  },
  getName: ({ name }) => name,
  headings: ['NAME', 'KEY', 'STATUS', 'EXPIRES', 'LAST USED', 'LIMITS', 'ID'],
  cells: (key) => [
    key.name,
    `${key.keyPrefix}…`,
    STATES[keyState(key)],
    key.expiresAt === null ? 'never' : shortTime(Date.parse(key.expiresAt)),
    key.lastUsedAt === null ? 'never' : shortTime(Date.parse(key.lastUsedAt)),
    key.limits.map(limitText).join(', ') || 'unlimited',
    key.id,
  ],
  none: 'No keys yet. To create one: sluice keys create --name laptop',
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

export const KEY: Kind<StoredKey> = {
  what: 'key',
  listedBy: 'keys list',
  all: (db) => listKeys(db, 'all'),
  getNames: ({ name, keyPrefix }) => [name, keyPrefix],
}

const called = ({ name, keyPrefix }: StoredKey): string => `"${name}" (${keyPrefix}…)`

interface EditOptions extends KeyOptions, Json {
  allModels?: true
  allAccounts?: true
  unlimited?: true
  enable?: true
  resetUsage?: true
}

export const edit: Run<EditOptions> = (io, [wanted = ''], options) => {
  const { allModels, allAccounts, unlimited, enable, resetUsage, json, ...fields } = options
  if (allAccounts && fields.accountTag) throw new UsageError('Use either --account-tag or --all-accounts.')
  if (allModels && fields.model) throw new UsageError('Use either --model or --all-models.')
  if (unlimited && fields.limit) throw new UsageError('Use either --limit or --unlimited.')
  const patch = checked(KeyPatch, {
    ...getFields(fields),
    ...(allModels && { allowedModels: null }),
    ...(allAccounts && { assignedAccountIds: null, assignedTags: null }),
    ...(unlimited && { limits: [] }),
    ...(enable && { isActive: true }),
    ...(resetUsage && { resetUsage: true }),
  })
  if (Object.keys(patch).length === 0)
    throw new UsageError('Nothing to change. Give at least one option, such as --name.')
  return withFolder(io, async ({ db }) => {
    const key = findOne(KEY, await KEY.all(db), wanted)
    const row = await commit(db, (tx) => updateKey(tx, key.id, patch, doing()))
    if (json) printJson(io, toApiKey(row, systemClock.now()))
    else io.stdout(`Changed key ${called(row)}.\n`)
    await warnOfModels(io, db, patch.allowedModels ?? [])
    return 0
  })
}

/** A new secret for the same key. */
export const regenerate: Run = (io, [wanted = ''], { json }) =>
  withFolder(io, async ({ db }) => {
    const { id } = findOne(KEY, await KEY.all(db), wanted)
    const issued = await commit(db, (tx) => regenerateKey(tx, id, doing()))
    show(io, issued, { json, sentence: `New secret for the key "${issued.row.name}". The old one no longer works.` })
    return 0
  })

/** The key stays with its history and can be enabled again. */
export const revoke = commandForOne(KEY, async (db, key) => {
  await commit(db, (tx) => updateKey(tx, key.id, { isActive: false }, doing()))
  return `Revoked key ${called(key)}.`
})

export const remove = commandForOne(KEY, async (db, key) => {
  await commit(db, (tx) => deleteKey(tx, key.id, doing()))
  return `Deleted key ${called(key)}. Its requests stay in the log.`
})
