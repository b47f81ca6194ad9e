/** Reads JSON, YAML and plain text files of any known format. */
import { getObject, getObjects, getText, isObject, type JsonObject, parseJson } from '../../lib/json.ts'
import { asAuthFiles } from '../accounts/auth-files.ts'
import { knownCredentials } from '../accounts/known-credentials.ts'
import { NewEndpoint } from '../egress/input.ts'
import { type ReadEntry, readAccountEntry } from './account-forms.ts'
import {
  type Found,
  type FoundAccount,
  type FoundProxy,
  found,
  type LeftOut,
  type TextFile,
  unknownFormat,
} from './found.ts'
import type { Format } from './words.ts'
import { readYaml } from './yaml-files.ts'

/** Throws `invalid_import` for a file in an unknown format. Encrypted Sluice bundles are read in `bundle.ts`. */
export const readTextFile = ({ name, text }: TextFile): Found => {
  if (/\.ya?ml$/i.test(name)) return readYaml({ name, text })
  const json = parseJson(text)
  if (Array.isArray(json)) return readEntries(json, name)
  if (isObject(json)) return readDocument(json, name)
  const lines = text.split('\n').flatMap((line) => line.trim() || [])
  if (lines.length > 0 && lines.every(isRefreshToken)) return readEntries(lines, name)
  return readPasted({ name, text })
}

/** Parses several JSON objects that follow each other. */
const readPasted = ({ name, text }: TextFile): Found => {
  const { files } = asAuthFiles(name, text)
  const parsed = files.map((file) => parseJson(file.text))
  if (files.length < 2 || parsed.some((one) => one === undefined))
    throw unknownFormat(name, 'it is neither JSON nor YAML')
  return readEntries(parsed, name)
}

const isRefreshToken = (text: string): boolean => /^(oaistb_)?rt_[\x21-\x7e]+$/.test(text)

const readDocument = (json: JsonObject, name: string): Found => {
  const { accounts } = json
  if (!Array.isArray(accounts)) return readEntries([json], name)
  return isSub2api(json, accounts) ? readSub2api(json, accounts, name) : readEntries(accounts, name)
}

/** Throws `invalid_import` if no entry is in a known format. */
const readEntries = (entries: readonly unknown[], name: string): Found => {
  const accounts: FoundAccount[] = []
  const leftOut: LeftOut[] = []
  const formats = new Set<Format>()
  for (const [index, entry] of entries.entries()) {
    const called = entries.length === 1 ? name : `${name} (${index + 1} of ${entries.length})`
    const read = readEntry(entry, called)
    if (read) {
      formats.add(read.format)
      accounts.push(read.account)
    } else leftOut.push({ kind: 'account', label: called, reason: getWhyUnknown(entry) })
  }
  const [format] = formats
  if (format) return found(format, name, { accounts, leftOut })
  if (entries.some((entry) => getOtherProvider(entry))) return found('cliproxyapi', name, { leftOut })
  throw unknownFormat(name, leftOut[0]?.reason ?? 'it has no entries')
}

const readEntry = (entry: unknown, name: string): ReadEntry | null => {
  if (typeof entry !== 'string') return readAccountEntry(entry, name)
  if (!isRefreshToken(entry)) return null
  return readAccountEntry({ refreshToken: entry }, name)
}

const getWhyUnknown = (entry: unknown): string => {
  const provider = getOtherProvider(entry)
  if (provider) return `This is a CLIProxyAPI token file for ${provider}. Sluice uses ChatGPT accounts.`
  if (!isObject(entry)) return 'This is not an account.'
  const known = knownCredentials(entry)
  if (known) return `The file ${known}.`
  const names = Object.keys(entry).filter((key) => /^[\w.-]{1,40}$/.test(key))
  return `Sluice doesn't know this format. Its fields: ${names.slice(0, 6).join(', ') || 'none'}.`
}

const OTHER_PROVIDERS = [
  'claude',
  'gemini',
  'gemini-cli',
  'qwen',
  'iflow',
  'antigravity',
  'kimi',
  'vertex',
  'xai',
  'aistudio',
]

/** The provider of a CLIProxyAPI token file that is not for ChatGPT. */
const getOtherProvider = (entry: unknown): string | null => {
  const type = getText(getObject(entry).type)
  return OTHER_PROVIDERS.includes(type) ? type : null
}

const isSub2api = ({ type, proxies }: JsonObject, accounts: readonly unknown[]): boolean =>
  type === 'sub2api-data' ||
  type === 'sub2api-bundle' ||
  Array.isArray(proxies) ||
  accounts.some((account) => isObject(getObject(account).credentials))

const readSub2api = (json: JsonObject, entries: readonly unknown[], name: string): Found => {
  const accounts: FoundAccount[] = []
  const leftOut: LeftOut[] = []
  for (const entry of entries) {
    const { name: label, platform, type } = getObject(entry)
    const read = readAccountEntry(entry, getText(label) || name)
    if (read?.format === 'sub2api') accounts.push(read.account)
    else
      leftOut.push({
        kind: 'account',
        label: getText(label) || name,
        reason: `Sluice imports only OpenAI accounts with OAuth. Platform: ${getText(platform) || 'none'}, type: ${getText(type) || 'none'}.`,
      })
  }
  const proxies: FoundProxy[] = []
  for (const entry of getObjects(json.proxies)) {
    const label = getText(entry.name) || getText(entry.host)
    const { protocol: scheme, host, port } = entry
    const login = { username: getText(entry.username) || null, password: getText(entry.password) || null }
    const isActive = ['', 'active'].includes(getText(entry.status))
    const read = NewEndpoint.safeParse({ name: label, scheme, host, port, ...login, isActive })
    if (read.success) proxies.push({ endpoint: read.data, key: getText(entry.proxy_key) || null })
    else
      leftOut.push({
        kind: 'proxy',
        label,
        reason: `Its ${String(read.error.issues[0]?.path[0] ?? 'form')} is not usable.`,
      })
  }
  return found('sub2api', name, { accounts, proxies, leftOut })
}
