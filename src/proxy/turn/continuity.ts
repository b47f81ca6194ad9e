/**
 * What a turn requires of its account, above all to be the one that owns its conversation, its ciphertext or its files.
 * When a conversation has to move, only the reasoning the new account cannot read is cut from the client's text
 * (decisions §3).
 */
import type { Client } from '../../auth/client-key.ts'
import { AppError } from '../../errors.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { getObjects, isObject, type JsonObject } from '../../lib/json.ts'
import { getElements, topMembers } from '../../lib/json-members.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'
import { FILE_LIFE_MS } from '../../model/conversations/uploaded-files.ts'
import { type AffinityMap, type AffinityRow, type Owner, sha256, threadHash } from '../pool/affinity.ts'
import type { LastUse, SelectionNeeds } from '../pool/selection-needs.ts'
import type { ProxyDeps } from './proxy-deps.ts'
import type { Turn, TurnBody } from './turn.ts'

/** What the input of a turn says about which account can serve it. */
interface InputMarks {
  /** It contains ciphertext of some account. */
  hasCiphertext: boolean
  /** It contains a `compaction` item: the whole history is ciphertext. */
  isAnchored: boolean
}

export const getMarks = (input: unknown): InputMarks => {
  const marks = { hasCiphertext: false, isAnchored: false }
  if (!Array.isArray(input)) return marks
  for (const item of input) {
    if (!isObject(item) || typeof item.encrypted_content !== 'string') continue
    marks.hasCiphertext = true
    if (isCompaction(item)) marks.isAnchored = true
  }
  return marks
}

const isCompaction = ({ type }: JsonObject): boolean => type === 'compaction' || type === 'context_compaction'

/** What the client's key decides. */
export const keyNeeds = (key: Client['key']): Pick<SelectionNeeds, 'scope' | 'keyOwnerId' | 'isOpportunistic'> => ({
  scope: key?.scope ?? null,
  keyOwnerId: key?.ownerUserId ?? null,
  isOpportunistic: key?.trafficClass === 'opportunistic',
})

/** `tried`: ids of the accounts already tried. */
export const getNeeds = (proxyDeps: ProxyDeps, turn: Turn, tried: ReadonlySet<string>): SelectionNeeds => ({
  model: turn.model,
  surface: turn.surface,
  ...keyNeeds(turn.client.key),
  restricted: turn.restricted,
  tried,
  owner: turn.relay?.owner ?? getOwner(proxyDeps, turn),
  streamCap: turn.settings.proxyAccountStreamLimit,
})

/** The account the turn should use; `hard` when no other account can read the history. */
export const getOwner = (proxyDeps: ProxyDeps, turn: Turn): SelectionNeeds['owner'] => {
  if (turn.fileOwner !== null) return { id: turn.fileOwner, hard: true, hasFiles: true }
  const chained = turn.chain === null ? null : (turn.session?.accountAt(proxyDeps.clock.monotonic()) ?? null)
  if (chained !== null) return { id: chained, hard: true }
  const issuer = getIssuer(proxyDeps, turn)
  const lastUse = conversationOwner(proxyDeps, turn)
  const conversation = lastUse?.accountId ?? firstServer(proxyDeps, turn)
  // The turn state comes from the handshake, so on a socket the conversation's owner is more recent.
  const isOlder = turn.transport === 'websocket'
  const [first, second] = isOlder ? [conversation, issuer] : [issuer, conversation]
  const anchor = turn.isAnchored ? anchorOwner(proxyDeps, turn) : null
  const id = anchor ?? first ?? second ?? recordedOwner(proxyDeps, turn)
  return id === null ? null : { id, hard: turn.isAnchored, successor: isOlder ? null : second, lastUse }
}

/** Follow-up requests within one client turn carry the state of the account they started on. */
const getIssuer = ({ pool }: ProxyDeps, { turnStateOwner }: Turn): string | null =>
  turnStateOwner === null ? null : (pool.byTag(turnStateOwner)?.id ?? null)

const conversationOwner = (proxyDeps: ProxyDeps, turn: Turn) =>
  turn.conversation === null
    ? null
    : proxyDeps.affinity.get('conversation', turn.conversation, proxyDeps.clock.now(), maxAgeMs(turn))

/** For the second request of an unnamed conversation. */
const firstServer = ({ affinity, clock }: ProxyDeps, { conversation, opening }: Turn): string | null =>
  conversation !== null && conversation === opening ? affinity.openings.noted(opening, clock.now()) : null

/** The recorded producer of the newest ciphertext in the input; null: none, or released. */
export const recordedOwner = (proxyDeps: ProxyDeps, turn: Turn): string | null => {
  const owner = newestProducer(proxyDeps, turn, () => true)
  return owner === null || owner.mixed ? null : owner.accountId
}

/** The recorded producer of a compacted history. Sub-agents may move the conversation they share, but not this. */
const anchorOwner = (proxyDeps: ProxyDeps, turn: Turn): string | null =>
  newestProducer(proxyDeps, turn, isCompaction)?.accountId ?? null

const newestProducer = (proxyDeps: ProxyDeps, turn: Turn, isMeant: (item: JsonObject) => boolean): Owner | null => {
  if (!turn.hasCiphertext || !turn.body) return null
  for (const item of getObjects(turn.body.json.input).reverse()) {
    const owner = isMeant(item) ? ciphertextOwner(proxyDeps, turn, item) : null
    if (owner !== null) return owner
  }
  return null
}

/** The body for this account, unchanged unless it contains reasoning this account is known not to read. */
export const bodyFor = (proxyDeps: ProxyDeps, turn: Turn, accountId: string): Uint8Array<ArrayBuffer> => {
  const body = turn.body! // kept until the commit point, where attempts end
  if (!turn.hasCiphertext) return body.bytes
  const owner = conversationOwner(proxyDeps, turn)
  const isAtHome = owner !== null && owner.accountId === accountId && !owner.mixed
  if (isAtHome) return body.bytes
  return dropReasoning(body, (item) => {
    const producer = ciphertextOwner(proxyDeps, turn, item)?.accountId ?? null
    return producer === null ? owner !== null : producer !== accountId // other accounts have served this conversation
  })
}

/** Last resort: drops all reasoning. */
export const withoutReasoning = (turn: Turn): Uint8Array<ArrayBuffer> => dropReasoning(turn.body!, () => true) // as in bodyFor

const ciphertextOwner = (proxyDeps: ProxyDeps, turn: Turn, item: JsonObject): Owner | null =>
  typeof item.encrypted_content === 'string'
    ? proxyDeps.affinity.get('ciphertext', sha256(item.encrypted_content), proxyDeps.clock.now(), maxAgeMs(turn))
    : null

const maxAgeMs = ({ settings }: Turn): number => settings.conversationAffinityMaxAgeDays * DAY_MS

/** Cuts matching `reasoning` items out of `input`; all other bytes stay as the client wrote them. */
const dropReasoning = (
  { bytes, json }: Pick<TurnBody, 'bytes' | 'json'>,
  isUnreadable: (item: JsonObject) => boolean,
): Uint8Array<ArrayBuffer> => {
  const input: unknown[] = Array.isArray(json.input) ? json.input : []
  const isCut = input.map((item) => isObject(item) && item.type === 'reasoning' && isUnreadable(item))
  if (!isCut.includes(true)) return bytes
  const list = topMembers(bytes).findLast(({ name }) => name === 'input')!.value // `json.input` was parsed from it
  const items = getElements(bytes, list)
  const kept = items.filter((_, index) => !isCut[index])
  const texts = kept.flatMap(({ value, end }) => [COMMA, bytes.subarray(value, end)]).slice(1)
  // some are cut, so there are items
  return Buffer.concat([bytes.subarray(0, items[0]!.value), ...texts, bytes.subarray(items.at(-1)!.end)])
}

const COMMA = encodeUtf8(',')

interface RememberedTurn {
  accountId: string
  ciphertexts: readonly string[]
  now: number
  /** What the request used and what a move would cost; null: ChatGPT reported no usage. */
  use: Omit<LastUse, 'accountId'> | null
}

/** Records who owns the conversation and the new ciphertext. Returns the rows to write. */
export const rememberOwners = (
  affinity: AffinityMap,
  turn: Turn,
  { accountId, ciphertexts, now, use }: RememberedTurn,
) => {
  const rows = ciphertexts.map((hash) => affinity.remember('ciphertext', hash, accountId, { now, mixed: false }))
  if (turn.conversation !== null) {
    const before = affinity.get('conversation', turn.conversation, now, maxAgeMs(turn))
    const hasLeft = before !== null && (before.mixed || before.accountId !== accountId)
    // a turn without ciphertext may belong to a sub-agent
    const mixed = hasLeft || turn.log.moved || turn.log.isShortened
    rows.push(affinity.remember('conversation', turn.conversation, accountId, { now, mixed, use }))
  }
  return rows.filter((row) => row !== null)
}

/**
 * Only the account that has an uploaded file can finalize it, and only there can a model request name it. The ids are stored
 * as hashes, scoped by the client's key, so a file of another key is unknown.
 */
interface FileScope {
  affinity: AffinityMap
  now: number
  keyId: string | null
}

export const fileOwner = ({ affinity, now, keyId }: FileScope, fileId: string): string | null =>
  affinity.get('file', threadHash(fileId, keyId), now, FILE_LIFE_MS)?.accountId ?? null

/** Returns the row to write, or null when the stored one is recent enough. */
export const rememberFile = (
  { affinity, now, keyId }: FileScope,
  { fileId, accountId }: { fileId: string; accountId: string },
): AffinityRow | null => affinity.remember('file', threadHash(fileId, keyId), accountId, { now, mixed: false })

/** The files that the input of a Responses request names: `input_file.file_id`, in messages and in the output of tools. */
export const getFileIds = (input: unknown): string[] => {
  const ids = new Set<string>()
  if (!Array.isArray(input)) return []
  for (const item of input) {
    if (!isObject(item)) continue
    for (const parts of [item.content, item.output]) {
      if (!Array.isArray(parts)) continue
      for (const { type, file_id: id } of getObjects(parts))
        if (type === 'input_file' && typeof id === 'string' && id !== '') ids.add(id)
    }
  }
  return [...ids]
}

/** The account and the rows to write because the files are in use; null where none of them was uploaded through Sluice. */
export interface FilesInUse {
  accountId: string
  rows: AffinityRow[]
}

/** Throws `continuity_owner_conflict` and `file_owner_unavailable`. */
export const useFiles = (deps: FileScope, fileIds: readonly string[]): FilesInUse | null => {
  const owners = new Set(fileIds.map((fileId) => fileOwner(deps, fileId)))
  const [accountId, ...others] = [...owners].filter((id) => id !== null)
  if (accountId === undefined) return null
  if (others.length > 0) throw new AppError('continuity_owner_conflict', { param: 'input' })
  if (owners.has(null))
    throw new AppError('file_owner_unavailable', {
      message: 'Sluice no longer knows which account has one of the files of this request. Upload the files again.',
      param: 'input',
    })
  const rows = fileIds.map((fileId) => rememberFile(deps, { fileId, accountId })).filter((row) => row !== null)
  return { accountId, rows }
}
