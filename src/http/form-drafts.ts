/** What a user typed into a rejected form, until the page is shown again. In memory only, never a secret or a file. */
import type { Clock } from '../lib/clock.ts'
import { MINUTE_MS } from '../lib/durations.ts'
import type { Random } from '../lib/random.ts'

/** Form fields as sent: a repeated field is a list. */
export type Typed = Readonly<Record<string, unknown>>

export interface FormDraft {
  owner: string
  /** Path and query the form was sent to. */
  action: string
  /** By field name. */
  values: ReadonlyMap<string, readonly string[]>
  /** Names of the rejected fields. */
  refused: readonly string[]
  /** What was wrong, in a sentence or two. */
  problem: string
}

const TTL_MS = 10 * MINUTE_MS
/** For all users together; the oldest are dropped. */
const MAX_DRAFTS = 100
const MAX_CHARS = 16_384
const SECRET = /password|secret|token|code$|^api_?key$/i

export class FormDrafts {
  readonly #clock: Clock
  readonly #random: Random
  readonly #drafts = new Map<string, FormDraft & { expiresAt: number }>()

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  /** Returns its id; null when there is nothing to keep, or too much. */
  keep(draft: Omit<FormDraft, 'values'>, typed: Typed): string | null {
    const values = getValues(typed)
    const chars = [...values].reduce((sum, [name, list]) => sum + name.length + list.join('&').length, 0)
    if (values.size === 0 || chars > MAX_CHARS) return null
    const id = this.#random.id('frm')
    this.#drafts.set(id, { ...draft, values, expiresAt: this.#clock.now() + TTL_MS })
    for (const old of [...this.#drafts.keys()].slice(0, -MAX_DRAFTS)) this.#drafts.delete(old)
    return id
  }

  /** Null when there is none or it belongs to another user. */
  get(id: string | undefined, owner: string | undefined): FormDraft | null {
    const now = this.#clock.now()
    for (const [old, { expiresAt }] of this.#drafts) if (expiresAt <= now) this.#drafts.delete(old)
    const draft = this.#drafts.get(id ?? '')
    return draft && draft.owner === owner ? draft : null
  }
}

/** Nested members are named `outer.inner`, like their fields. */
const getValues = (typed: Typed): Map<string, string[]> => {
  const values = new Map<string, string[]>()
  const add = (name: string, value: unknown) => {
    if (SECRET.test(name)) return
    if (Array.isArray(value)) for (const one of value) add(name, one)
    else if (typeof value === 'string') values.getOrInsert(name, []).push(value)
    else if (isMembers(value)) for (const [inner, one] of Object.entries(value)) add(`${name}.${inner}`, one)
  }
  for (const [name, value] of Object.entries(typed)) add(name, value)
  return values
}

const isMembers = (value: unknown): value is Typed =>
  typeof value === 'object' && value !== null && !(value instanceof Blob)
