/** The content of import files, independent of their format. */
import type { RoutingPolicy } from '../../../db/schema/accounts.ts'
import { AppError } from '../../errors.ts'
import type { SettingName } from '../../settings/schema.ts'
import type { ImportedAccount } from '../accounts/auth-json.ts'
import type { NewEndpoint } from '../egress/input.ts'
import type { NewKey } from '../keys/key-input.ts'
import type { KeptLimit } from '../keys/key-limits.ts'
import type { NewSource } from '../sources/source-input.ts'
import type { FoundHistory } from './codex-lb-history.ts'
import { FORMAT_NAMES, type Format, type ItemKind } from './words.ts'

/** Additional details of an account. Applied to new accounts only. */
export interface AccountExtras {
  alias?: string
  routingPolicy?: RoutingPolicy
  securityWorkAuthorized?: boolean
  tags?: readonly string[]
  /** The outbound proxy of the account, as the key of a `FoundProxy`. */
  proxyKey?: string
  /** The state stored by the other program. Temporary blocks are not imported. */
  state?: 'paused' | 'reauth_required' | 'deactivated'
}

export interface FoundAccount {
  /** The e-mail address, or whatever else identifies the account in its file. */
  label: string
  /** Null if the file has only a refresh token, or the account cannot be imported. */
  account: ImportedAccount | null
  /** Set if the file has only a refresh token. The import exchanges it for an account. */
  refreshToken: string | null
  /** The reason it cannot be imported, as a sentence. Null if it can. */
  problem: string | null
  extras: AccountExtras
  /** Its ID in the other program. Keys refer to it. */
  foreignId: string | null
}

export interface FoundKey {
  label: string
  /** Hex SHA-256 of the key. */
  hash: string
  prefix: string
  input: NewKey
  isActive: boolean
  limits: readonly KeptLimit[]
  /** Account IDs in the other program. Null means every account. */
  foreignAccountIds: readonly string[] | null
  /** What will be different in Sluice, as sentences. */
  notes: readonly string[]
  problem: string | null
}

export interface FoundSetting {
  name: SettingName
  /** For the setting `singleAccountId`: the account's ID in the other program. */
  value: unknown
}

export interface FoundSource {
  input: NewSource
  /** The environment variable that contains its key. Sluice never reads it. */
  keyVariable: string | null
  notes: readonly string[]
}

export interface FoundProxy {
  endpoint: NewEndpoint
  /** Its name in the other program. Accounts refer to it. */
  key: string | null
}

/** Something that cannot be imported, with the reason as a sentence. */
export interface LeftOut {
  kind: ItemKind
  label: string
  reason: string
}

/** The content of one file or database. */
export interface Found {
  format: Format
  /** The file name. */
  name: string
  accounts: readonly FoundAccount[]
  keys: readonly FoundKey[]
  sources: readonly FoundSource[]
  proxies: readonly FoundProxy[]
  settings: readonly FoundSetting[]
  /** The IP addresses and ranges of the firewall list. */
  firewall: readonly string[]
  history: FoundHistory | null
  leftOut: readonly LeftOut[]
  notes: readonly string[]
}

export const found = (format: Format, name: string, parts: Partial<Omit<Found, 'format' | 'name'>>): Found => ({
  format,
  name,
  accounts: [],
  keys: [],
  sources: [],
  proxies: [],
  settings: [],
  firewall: [],
  history: null,
  leftOut: [],
  notes: [],
  ...parts,
})

/** An ID of another program. Unique among the files of an import, of which `source` is the index. */
export const foreignId = (source: number, id: string): string => `${source}:${id}`

/** A warning that the other program still uses its copy of the tokens. */
export const getLiveWarning = (format: Format): string =>
  `Stop ${FORMAT_NAMES[format]} before you use these accounts here. If both programs use the same account, one of them gets signed out.`

export interface TextFile {
  name: string
  text: string
}

/** The message lists the formats, because the user may have selected the wrong file. */
export const unknownFormat = (name: string, why: string): AppError =>
  new AppError('invalid_import', {
    message: `${name} is not in a format that Sluice can import: ${why.replace(/\.$/, '')}. Sluice can import files from ${NAMES}.`,
    param: name,
  })

const NAMES = new Intl.ListFormat('en').format(Object.values(FORMAT_NAMES))
