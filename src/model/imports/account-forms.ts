/**
 * Reads one account in the formats of other programs. The formats come from their public source code and were not
 * tested with files that the programs wrote.
 */
import { AppError } from '../../errors.ts'
import { getObject, getText, isObject, type JsonObject } from '../../lib/json.ts'
import {
  getAccessIdentity,
  getIdentity,
  getRefreshDate,
  type IdentityHints,
  type ImportedAccount,
  readAuthJson,
  unusableField,
} from '../accounts/auth-json.ts'
import { knownCredentials } from '../accounts/known-credentials.ts'
import type { AccountExtras, FoundAccount } from './found.ts'
import type { Format } from './words.ts'

export interface ReadEntry {
  format: Format
  account: FoundAccount
}

/** Returns null if the format is unknown. `name` is the file name for messages. */
export const readAccountEntry = (entry: unknown, name: string): ReadEntry | null => {
  if (!isObject(entry)) return null
  const form = FORMS.find(({ matches }) => matches(entry))
  return form ? { format: form.format, account: form.read(entry, name) } : null
}

interface Form {
  format: Format
  matches: (entry: JsonObject) => boolean
  read: (entry: JsonObject, name: string) => FoundAccount
}

const has = (entry: JsonObject, ...names: string[]): boolean =>
  names.every((name) => getText(entry[name]).trim() !== '')

const hasTokens = ({ tokens }: JsonObject): boolean => Object.keys(getObject(tokens)).length > 0

/** The known formats. The first that matches is used. */
const FORMS: readonly Form[] = [
  {
    format: 'codex-manager',
    matches: (entry) => hasTokens(entry) && 'issuer' in getObject(entry.meta),
    read: (entry, name) => {
      const meta = getObject(entry.meta)
      // its `account_id` is an id of Codex-Manager
      const tokens = { ...getObject(entry.tokens), account_id: text(meta.chatgptAccountId) }
      return readNative({ tokens }, name, {
        label: text(meta.label),
        tags: text(meta.tags)
          ?.split(',')
          .flatMap((tag) => tag.trim() || []),
      })
    },
  },
  {
    format: 'cockpit',
    matches: (entry) => hasTokens(entry) && has(entry, 'id', 'email'),
    read: (entry, name) => {
      const tokens = { account_id: text(entry.account_id), ...getObject(entry.tokens) }
      const list = Array.isArray(entry.tags) ? entry.tags : []
      return readNative({ tokens }, name, {
        label: text(entry.email),
        tags: list.flatMap((tag) => getText(tag).trim() || []),
      })
    },
  },
  {
    format: 'codex',
    matches: (entry) => 'tokens' in entry || 'OPENAI_API_KEY' in entry || 'auth_mode' in entry,
    read: (entry, name) => readNative(entry, name, {}),
  },
  {
    format: 'cliproxyapi',
    matches: (entry) => entry.type === 'codex' && (has(entry, 'access_token') || has(entry, 'refresh_token')),
    read: (entry, name) => assemble(flatParts(entry), name),
  },
  {
    format: 'sub2api',
    matches: (entry) => entry.platform === 'openai' && entry.type === 'oauth' && isObject(entry.credentials),
    read: (entry, name) => {
      const proxyKey = text(entry.proxy_key)
      const extras = proxyKey === undefined ? {} : { proxyKey }
      return assemble({ ...flatParts(getObject(entry.credentials)), label: text(entry.name), extras }, name)
    },
  },
  {
    format: 'opencode',
    matches: ({ openai }) => getObject(openai).type === 'oauth',
    read: ({ openai }, name) => {
      const { access, refresh, accountId } = getObject(openai)
      return assemble(
        { accessToken: text(access), refreshToken: text(refresh), chatgptAccountId: text(accountId) },
        name,
      )
    },
  },
  {
    format: 'icebear',
    matches: (entry) => has(entry, 'refreshToken') || has(entry, 'token', 'accountId'),
    read: (entry, name) =>
      assemble(
        {
          ...flatParts(entry),
          accessToken: text(entry.token) ?? text(entry.accessToken),
          refreshToken: text(entry.refreshToken),
          idToken: text(entry.idToken),
          chatgptAccountId: text(entry.accountId),
          chatgptUserId: text(entry.userId),
          planType: text(entry.planType),
          label: text(entry.label),
          extras: { ...(text(entry.label) && { alias: text(entry.label) }) },
        },
        name,
      ),
  },
  {
    format: 'cockpit',
    matches: (entry) => has(entry, 'refresh_token') && !has(entry, 'type') && knownCredentials(entry) === null,
    read: (entry, name) => assemble(flatParts(entry), name),
  },
]

interface Parts extends IdentityHints {
  accessToken?: string
  refreshToken?: string
  idToken?: string
  lastRefresh?: string
  label?: string
  extras?: AccountExtras
}

const flatParts = (entry: JsonObject): Parts => ({
  accessToken: text(entry.access_token),
  refreshToken: text(entry.refresh_token),
  idToken: text(entry.id_token),
  email: text(entry.email),
  chatgptAccountId: text(entry.account_id) ?? text(entry.chatgpt_account_id),
  chatgptUserId: text(entry.chatgpt_user_id),
  planType: text(entry.plan_type),
  lastRefresh: text(entry.last_refresh),
})

const text = (value: unknown): string | undefined => getText(value).trim() || undefined

const assemble = (parts: Parts, name: string): FoundAccount => {
  const { accessToken, refreshToken, idToken = '', lastRefresh, label = parts.email ?? name, extras = {} } = parts
  const base = { label, account: null, refreshToken: null, problem: null, extras, foreignId: null }
  if (!refreshToken)
    return { ...base, problem: 'It has no refresh token, so it would stop working when its access token expires.' }
  const identity = idToken ? getIdentity(idToken) : accessToken ? getAccessIdentity(accessToken, parts) : null
  if (!accessToken || !identity) return { ...base, refreshToken }
  const completed = { ...identity, chatgptAccountId: identity.chatgptAccountId ?? parts.chatgptAccountId ?? null }
  const tokens = { accessToken, refreshToken, idToken }
  return usable({ identity: completed, tokens, lastRefreshAt: getRefreshDate(lastRefresh, tokens) }, base)
}

const usable = (account: ImportedAccount, base: Omit<FoundAccount, 'account'>): FoundAccount => {
  const problem = unusableField(account)
  return problem
    ? { ...base, account: null, problem: `It is not usable: ${problem}.` }
    : { ...base, label: account.identity.email, account }
}

interface NativeExtras {
  label?: string
  tags?: readonly string[]
}

/** For files with the `tokens` of an `auth.json`. */
const readNative = (entry: JsonObject, name: string, { label = name, tags = [] }: NativeExtras): FoundAccount => {
  const extras = tags.length > 0 ? { tags } : {}
  const base = { label, account: null, refreshToken: null, problem: null, extras, foreignId: null }
  try {
    const account = readAuthJson(entry, name)
    return { ...base, label: account.identity.email, account }
  } catch (err) {
    if (!(err instanceof AppError)) throw err
    return { ...base, problem: toSentence(err.message, name) }
  }
}

/** The message without the file name, which is shown separately. */
export const toSentence = (message: string, name: string): string =>
  message.startsWith(`${name} `) ? `The file ${message.slice(name.length + 1)}` : message
