/** Plans keys, model sources, outbound proxies, settings and the firewall list. */
import type { Db } from '../../../db/commit.ts'
import { formatCidr, parseCidr } from '../../lib/cidr.ts'
import { iso } from '../../lib/iso.ts'
import { DEFAULTS, type SettingName, Settings } from '../../settings/schema.ts'
import { listEntries } from '../firewall.ts'
import { listKeys } from '../keys/api-keys.ts'
import { listSources } from '../sources/source-rows.ts'
import { type Found, foreignId } from './found.ts'
import type { DraftItem, Planning } from './plan.ts'
import { endpointFinder } from './proxies.ts'

export const planOthers = async (db: Db, files: readonly Found[], planning: Planning): Promise<DraftItem[]> => [
  ...(await planKeys(db, files)),
  ...(await planSources(db, files)),
  ...(await planProxies(db, files, planning)),
  ...planSettings(files, planning.settings),
  ...(await planFirewall(db, files)),
  ...planHistory(files),
  ...files.flatMap(({ leftOut }, source) =>
    leftOut.map((item): DraftItem => ({ ...item, verdict: 'broken', source, content: null })),
  ),
]

const each = <T>(files: readonly Found[], pick: (file: Found) => readonly T[]): { value: T; source: number }[] =>
  files.flatMap((file, source) => pick(file).map((value) => ({ value, source })))

const planKeys = async (db: Db, files: readonly Found[]): Promise<DraftItem[]> => {
  const known = new Map((await listKeys(db, 'all')).map(({ keyHash, name }) => [keyHash, name]))
  return each(files, ({ keys }) => keys).map(({ value: key, source }): DraftItem => {
    const base = { kind: 'key' as const, label: key.label, source }
    const name = known.get(key.hash)
    if (key.problem) return { ...base, verdict: 'broken', reason: key.problem, content: null }
    if (name !== undefined)
      return { ...base, verdict: 'same', reason: `This key is already here as ${name}.`, content: null }
    known.set(key.hash, key.label)
    return { ...base, verdict: 'new', reason: key.notes.join(' ') || null, content: { kind: 'key', key, source } }
  })
}

const planSources = async (db: Db, files: readonly Found[]): Promise<DraftItem[]> => {
  const stored = await listSources(db)
  const known = new Map(stored.map(({ baseUrl, name }) => [withoutSlash(baseUrl), name]))
  return each(files, ({ sources }) => sources).map(({ value, source }): DraftItem => {
    const { input, keyVariable, notes } = value
    const base = { kind: 'source' as const, label: input.name, source }
    const name = known.get(withoutSlash(input.baseUrl))
    if (name !== undefined)
      return { ...base, verdict: 'same', reason: `There is a model source with this address: ${name}.`, content: null }
    const missing =
      keyVariable &&
      `Its key is in ${keyVariable}, which Sluice does not read. Unless you enter the key, the source is imported disabled.`
    const models = `${input.models.length} ${input.models.length === 1 ? 'model' : 'models'}.`
    const reason = [models, missing, ...notes].filter(Boolean).join(' ')
    return { ...base, verdict: 'new', reason, content: { kind: 'source', source: value } }
  })
}

const withoutSlash = (url: string): string => url.replace(/\/+$/, '')

const planProxies = async (db: Db, files: readonly Found[], planning: Planning): Promise<DraftItem[]> => {
  const find = await endpointFinder(db)
  return each(files, ({ proxies }) => proxies).map(({ value: { endpoint, key }, source }): DraftItem => {
    const { scheme, host, port, name, isActive } = endpoint
    const base = { kind: 'proxy' as const, label: name, source }
    const users = key === null ? 0 : (files[source]?.accounts ?? []).filter((one) => one.extras.proxyKey === key).length
    const known = find(endpoint)
    if (known) {
      const use = users > 0 && planning.assignsProxies ? ' Its accounts are assigned to it.' : ''
      return { ...base, verdict: 'same', reason: `This proxy is already here as ${known.name}.${use}`, content: null }
    }
    const use = users > 0 ? 'Imported with a pool, to which its accounts are assigned.' : 'Add it to a pool to use it.'
    const state = isActive ? '' : ' It was inactive and stays inactive.'
    return {
      ...base,
      verdict: 'new',
      reason: `${scheme}://${host}:${port}. ${use}${state}`,
      content: { kind: 'proxy', endpoint, key: users > 0 ? foreignId(source, key ?? '') : null },
    }
  })
}

const planSettings = (files: readonly Found[], current: Settings): DraftItem[] =>
  each(files, ({ settings }) => settings).map(({ value: setting, source }): DraftItem => {
    const { name, value } = setting
    const base = { kind: 'setting' as const, label: `${getLabel(name)}: ${text(value)}`, source }
    if (name !== 'singleAccountId' && current[name] === value)
      return { ...base, verdict: 'same', reason: 'It has this value already.', content: null }
    const isSet = current[name] !== DEFAULTS[name]
    return {
      ...base,
      verdict: isSet ? 'newer' : 'new',
      reason: `${isSet ? 'Replaces' : 'Default'}: ${text(current[name])}.`,
      content: { kind: 'setting', setting, source },
    }
  })

const text = (value: unknown): string =>
  value === true ? 'on' : value === false ? 'off' : value === null ? 'none' : String(value)

const getLabel = (name: SettingName): string => String(Settings.shape[name].meta()?.label ?? name)

const planFirewall = async (db: Db, files: readonly Found[]): Promise<DraftItem[]> => {
  const known = new Set((await listEntries(db)).map(({ ipAddress }) => ipAddress))
  return each(files, ({ firewall }) => firewall).map(({ value, source }): DraftItem => {
    const base = { kind: 'firewall' as const, label: value, source }
    const cidr = parseCidr(value.trim())
    const address = cidr && formatCidr(cidr)
    if (address === null)
      return { ...base, verdict: 'broken', reason: 'This is not an IP address or range.', content: null }
    if (known.has(address)) return { ...base, verdict: 'same', reason: 'It is on the list already.', content: null }
    known.add(address)
    return { ...base, verdict: 'new', reason: null, content: { kind: 'firewall', address } }
  })
}

const planHistory = (files: readonly Found[]): DraftItem[] =>
  each(files, ({ history }) => (history ? [history] : [])).map(({ value: history, source }): DraftItem => {
    const { requests, rows, from, to, after, parts } = history
    const base = { kind: 'history' as const, label: `Requests from ${day(from)} to ${day(to)}`, source }
    if (parts.length === 0)
      return { ...base, verdict: 'same', reason: 'The request log of this codex-lb is already here.', content: null }
    const those = after > 0 ? `the ${requests} requests that are not here yet` : `all ${requests} requests`
    const reason = `Hourly totals of ${those}, and ${rows} rows of the last 30 days.`
    return { ...base, verdict: 'new', reason, content: { kind: 'history', history, source } }
  })

const day = (at: number): string => iso(at).slice(0, 10)
