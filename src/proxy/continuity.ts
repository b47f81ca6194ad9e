/**
 * Keeps a conversation with the account that owns its ciphertext, and readies the body when it has to move: only the
 * reasoning the new account cannot read is left out, as a splice in the text the client wrote (decisions §3).
 */
import { DAY_MS } from '../lib/durations.ts'
import { isObject, type JsonObject, objectsOf } from '../lib/json.ts'
import { elementsOf, topMembers } from '../lib/json-members.ts'
import { encodeUtf8 } from '../lib/utf8.ts'
import { type AffinityMap, sha256 } from './affinity.ts'
import type { Plane } from './plane.ts'
import type { SelectionNeeds } from './select.ts'
import type { Turn, TurnBody } from './turn.ts'

/** What the input of a turn says about who may serve it. */
interface InputMarks {
  /** It carries ciphertext of some account. */
  hasCiphertext: boolean
  /** It carries a `compaction` item: the whole history is ciphertext. */
  isAnchored: boolean
}

export const marksOf = (input: unknown): InputMarks => {
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

/** The account the turn should be on; hard when it cannot be read elsewhere. */
export const ownerOf = (plane: Plane, turn: Turn): SelectionNeeds['owner'] => {
  const chained = turn.chain === null ? null : (turn.session?.accountAt(plane.clock.monotonic()) ?? null)
  if (chained !== null) return { id: chained, hard: true }
  const issuer = issuerOf(plane, turn)
  const conversation = conversationOwner(plane, turn)?.accountId ?? firstServer(plane, turn)
  // The state a handshake brought is of the turn before the socket: where the conversation has gone since, it is older.
  const isOlder = turn.transport === 'websocket'
  const [first, second] = isOlder ? [conversation, issuer] : [issuer, conversation]
  const anchor = turn.isAnchored ? anchorOwner(plane, turn) : null
  const id = anchor ?? first ?? second ?? recordedOwner(plane, turn)
  return id === null ? null : { id, hard: turn.isAnchored, heir: isOlder ? null : second }
}

/** Within one turn of the client its follow-up requests carry the state of the account they began on. */
const issuerOf = ({ pool }: Plane, { turnStateOwner }: Turn): string | null =>
  turnStateOwner === null ? null : (pool.byTag(turnStateOwner)?.id ?? null)

const conversationOwner = (plane: Plane, turn: Turn) =>
  turn.conversation === null
    ? null
    : plane.affinity.get('conversation', turn.conversation, plane.clock.now(), maxAgeMs(turn))

/** For the second request of a conversation without a name. */
const firstServer = ({ affinity, clock }: Plane, { conversation, opening }: Turn): string | null =>
  conversation !== null && conversation === opening ? affinity.openings.noted(opening, clock.now()) : null

/** The recorded producer of the newest ciphertext in the input, or null. */
export const recordedOwner = (plane: Plane, turn: Turn): string | null => newestProducer(plane, turn, () => true)

/** The recorded producer of the history that is one ciphertext: a sub-agent moves the conversation it shares, and not this. */
const anchorOwner = (plane: Plane, turn: Turn): string | null => newestProducer(plane, turn, isCompaction)

const newestProducer = (plane: Plane, turn: Turn, isMeant: (item: JsonObject) => boolean): string | null => {
  if (!turn.hasCiphertext || !turn.body) return null
  for (const item of objectsOf(turn.body.json.input).reverse()) {
    const owner = isMeant(item) ? ciphertextOwner(plane, turn, item) : null
    if (owner !== null) return owner
  }
  return null
}

/** The body for this account: untouched unless it carries reasoning the account is known not to be able to read. */
export const bodyFor = (plane: Plane, turn: Turn, accountId: string): Uint8Array<ArrayBuffer> => {
  const body = turn.body! // kept until the commit point, and attempts end there
  if (!turn.hasCiphertext) return body.bytes
  const owner = conversationOwner(plane, turn)
  const isAtHome = owner !== null && owner.accountId === accountId && !owner.mixed
  if (isAtHome) return body.bytes
  return dropReasoning(body, (item) => {
    const producer = ciphertextOwner(plane, turn, item)
    return producer === null ? owner !== null : producer !== accountId // the conversation has been on others
  })
}

/** The last resort: no reasoning at all. */
export const withoutReasoning = (turn: Turn): Uint8Array<ArrayBuffer> => dropReasoning(turn.body!, () => true) // as in bodyFor

const ciphertextOwner = (plane: Plane, turn: Turn, item: JsonObject): string | null =>
  typeof item.encrypted_content === 'string'
    ? (plane.affinity.get('ciphertext', sha256(item.encrypted_content), plane.clock.now(), maxAgeMs(turn))?.accountId ??
      null)
    : null

const maxAgeMs = ({ settings }: Turn): number => settings.conversationAffinityMaxAgeDays * DAY_MS

/** Cuts matching `reasoning` items out of `input`; every other byte stays as the client wrote it. */
const dropReasoning = (
  { bytes, json }: Pick<TurnBody, 'bytes' | 'json'>,
  isUnreadable: (item: JsonObject) => boolean,
): Uint8Array<ArrayBuffer> => {
  const input: unknown[] = Array.isArray(json.input) ? json.input : []
  const isCut = input.map((item) => isObject(item) && item.type === 'reasoning' && isUnreadable(item))
  if (!isCut.includes(true)) return bytes
  const list = topMembers(bytes).findLast(({ name }) => name === 'input')!.value // it was parsed from there
  const items = elementsOf(bytes, list)
  const kept = items.filter((_, index) => !isCut[index])
  const texts = kept.flatMap(({ value, end }) => [COMMA, bytes.subarray(value, end)]).slice(1)
  return Buffer.concat([bytes.subarray(0, items[0]!.value), ...texts, bytes.subarray(items.at(-1)!.end)]) // some are cut, so there are items
}

const COMMA = encodeUtf8(',')

/** Remembers after a turn who owns its conversation and the ciphertext it produced. Returns the rows to be written. */
export const rememberOwners = (
  affinity: AffinityMap,
  turn: Turn,
  { accountId, ciphertexts, now }: { accountId: string; ciphertexts: readonly string[]; now: number },
) => {
  const rows = ciphertexts.map((hash) => affinity.remember('ciphertext', hash, accountId, { now, mixed: false }))
  if (turn.conversation !== null) {
    const before = affinity.get('conversation', turn.conversation, now, maxAgeMs(turn))
    const hasLeft = before !== null && (before.mixed || before.accountId !== accountId)
    const mixed = hasLeft || turn.log.moved || turn.log.isShortened // a turn without ciphertext may be a sub-agent's
    rows.push(affinity.remember('conversation', turn.conversation, accountId, { now, mixed }))
  }
  return rows.filter((row) => row !== null)
}
