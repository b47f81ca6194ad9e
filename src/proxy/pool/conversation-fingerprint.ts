/** Recognises an unnamed conversation by how it begins: chat clients send the whole conversation with every request. */
import { MINUTE_MS } from '../../lib/durations.ts'
import { getObject, getObjects, getText, type JsonObject } from '../../lib/json.ts'

/** Characters read of what precedes the first message and of that message; both may be megabytes long. */
const MAX_CHARS = { before: 512, first: 4096 }

interface Opening {
  /** The first user message and what precedes it. */
  name: string
  /**
   * The model has answered or called a tool since. Otherwise the request may be a single one or the first of a
   * conversation.
   */
  isAnswered: boolean
}

/** Null without any text to recognise it by. */
export const getOpening = ({ instructions, input }: JsonObject): Opening | null => {
  const items = getObjects(input)
  const first = items.findIndex(({ role }) => role === 'user')
  if (first === -1) return null
  const text = textIn([items[first]?.content], MAX_CHARS.first)
  const before = textIn(
    [getText(instructions), ...items.slice(0, first).map(({ content }) => content)],
    MAX_CHARS.before,
  )
  return text === '' ? null : { name: `opening\0${before}\0${text}`, isAnswered: items.slice(first + 1).some(isAnswer) }
}

/** How long the account of a first request is remembered for the second. */
const NOTED_MS = 15 * MINUTE_MS
/** Most first requests have no second. */
const MAX_NOTED = 10_000

/** Known openings, in memory only. */
export class Openings {
  readonly #underWay = new Map<string, number>()
  readonly #firstServed = new Map<string, { accountId: string; at: number }>()

  /**
   * True when no turn with this opening is running. Turns of one conversation are sequential, so parallel turns with
   * the same opening are separate conversations. Each `begin` needs an `end`.
   */
  begin(hash: string): boolean {
    const count = this.#underWay.get(hash) ?? 0
    this.#underWay.set(hash, count + 1)
    return count === 0
  }

  end(hash: string): void {
    const count = this.#underWay.get(hash) ?? 0
    if (count > 1) this.#underWay.set(hash, count - 1)
    else this.#underWay.delete(hash)
  }

  /** Records that this account answered a first request at `at` (ms since epoch). */
  note(hash: string, accountId: string, at: number): void {
    this.#firstServed.delete(hash) // set() alone keeps the old place in the eviction order
    this.#firstServed.set(hash, { accountId, at })
    if (this.#firstServed.size > MAX_NOTED) this.#firstServed.delete(this.#firstServed.keys().next().value!) // size > 0
  }

  /** The account that answered the first request, while remembered. */
  noted(hash: string, now: number): string | null {
    const first = this.#firstServed.get(hash)
    return first && now - first.at <= NOTED_MS ? first.accountId : null
  }

  /** Drops notes about this account. */
  forget(accountId: string): void {
    for (const [hash, first] of this.#firstServed) if (first.accountId === accountId) this.#firstServed.delete(hash)
  }

  /** Drops notes about other accounts. */
  keepOnly(accountIds: ReadonlySet<string>): void {
    for (const [hash, { accountId }] of this.#firstServed)
      if (!accountIds.has(accountId)) this.#firstServed.delete(hash)
  }
}

const isAnswer = ({ role, type }: JsonObject): boolean => role === 'assistant' || getText(type).endsWith('_call')

const textIn = (contents: readonly unknown[], chars: number): string => {
  let told = ''
  for (const content of contents)
    for (const part of typeof content === 'string' ? [{ text: content }] : Array.isArray(content) ? content : []) {
      told += getText(getObject(part).text).slice(0, chars - told.length)
      if (told.length === chars) return told
    }
  return told
}
