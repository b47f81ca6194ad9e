/** Tells a conversation by how it began, where its client names none: chat clients send all of it with every turn. */
import { type JsonObject, objectOf, objectsOf, textOf } from '../lib/json.ts'

/** Of what stands before the first message, and of that: no more than tells; both may be megabytes long. */
const TOLD_CHARS = { before: 512, first: 4096 }

/**
 * The first message of the user and what stands before it, as a name; null while nothing was answered: requests that are no
 * conversation stay spread over the accounts, whatever they have in common, and are not remembered.
 */
export const openingOf = ({ instructions, input }: JsonObject): string | null => {
  const items = objectsOf(input)
  const first = items.findIndex(({ role }) => role === 'user')
  if (first === -1 || !items.slice(first + 1).some(isAnswer)) return null
  const text = textIn([items[first]?.content], TOLD_CHARS.first)
  const before = textIn(
    [textOf(instructions), ...items.slice(0, first).map(({ content }) => content)],
    TOLD_CHARS.before,
  )
  return text === '' ? null : `opening\0${before}\0${text}`
}

/**
 * Conversations told by their opening that have a turn under way. The turns of one follow each other: what begins alike and
 * runs side by side, as requests that share their examples do, is several.
 */
export class Openings {
  readonly #underWay = new Map<string, number>()

  /** Whether nothing of this opening was under way. What began must `end`. */
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
}

const isAnswer = ({ role, type }: JsonObject): boolean => role === 'assistant' || textOf(type).endsWith('_call')

const textIn = (contents: readonly unknown[], chars: number): string => {
  let told = ''
  for (const content of contents)
    for (const part of typeof content === 'string' ? [{ text: content }] : Array.isArray(content) ? content : []) {
      told += textOf(objectOf(part).text).slice(0, chars - told.length)
      if (told.length === chars) return told
    }
  return told
}
