/** Options of `keys create` and `keys edit`, validated and converted for the model. */
import { z } from 'zod'
import { CLAUDE_SIZES, LIMIT_TYPES, LIMIT_WINDOWS } from '../../db/schema/keys.ts'
import { systemClock } from '../lib/clock.ts'
import { iso } from '../lib/iso.ts'
import { EFFORTS } from '../model/catalog/efforts.ts'
import { UsageError } from './command.ts'

export interface KeyOptions {
  name?: string
  model?: readonly string[]
  limit?: readonly string[]
  expires?: string
  traffic?: string
  accountTag?: readonly string[]
  prohibitFastMode?: string
  claudeModel?: readonly string[]
}

/** The fields of a key that were given. Throws `UsageError`. */
export const getFields = ({ name, model, limit, expires, traffic, ...more }: KeyOptions): Record<string, unknown> => ({
  ...(name !== undefined && { name }),
  ...(model !== undefined && { allowedModels: model }),
  ...(limit !== undefined && { limits: limit.map(parseLimit) }),
  ...(expires !== undefined && { expiresAt: parseTime(expires) }),
  ...(traffic !== undefined && { trafficClass: traffic }),
  ...(more.accountTag !== undefined && { assignedTags: more.accountTag }),
  ...(more.prohibitFastMode !== undefined && {
    prohibitFastMode: more.prohibitFastMode === 'default' ? null : more.prohibitFastMode,
  }),
  ...(more.claudeModel !== undefined && { claudeModels: parseClaudeModels(more.claudeModel) }),
})

/** `input` parsed with `schema`. Throws a `UsageError` naming the option. */
export const checked = <S extends z.ZodType>(schema: S, input: unknown): z.output<S> => {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const option = OPTIONS[String(issue?.path[0])] ?? 'The key'
  throw new UsageError(issue ? `${option} ${inWords(issue)}` : `${option} is not valid.`)
}

const OPTIONS: Readonly<Record<string, string>> = {
  name: '--name',
  allowedModels: '--model',
  limits: '--limit',
  expiresAt: '--expires',
  trafficClass: '--traffic',
  assignedTags: '--account-tag',
  prohibitFastMode: '--prohibit-fast-mode',
  claudeModels: '--claude-model',
}

const inWords = (issue: z.core.$ZodIssue): string => {
  if (issue.code === 'too_small') return 'must not be empty.'
  if (issue.code === 'too_big' && issue.origin === 'string') return `must have at most ${issue.maximum} characters.`
  if (issue.code === 'too_big') return `can be given at most ${issue.maximum} times.`
  return `cannot be used: ${issue.message}`
}

const FACTORS: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, g: 1e9 }
export const MICROS = 1e6
/** The relative error of `1.1M` in floating point: more than a micro-dollar for 17,000.01 dollars. */
const ROUNDING = 2 * Number.EPSILON

/** `total_tokens:daily:5M`, `cost_usd:monthly:20:gpt-5.5`; the last part, a model, may contain colons. */
const parseLimit = (text: string) => {
  const [limitType = '', limitWindow = '', amount = '', ...model] = text.split(':')
  const [, digits, suffix = ''] = /^(\d+(?:\.\d+)?)([kmg]?)$/i.exec(amount) ?? []
  if (!isOneOf(LIMIT_TYPES, limitType) || !isOneOf(LIMIT_WINDOWS, limitWindow) || digits === undefined)
    throw new UsageError(
      `--limit ${text} is not TYPE:WINDOW:MAX[:MODEL]. Types: ${LIMIT_TYPES.join(', ')}. ` +
        `Windows: ${LIMIT_WINDOWS.join(', ')}. MAX is a number such as 500, 20k or 1.5M.`,
    )
  const unit = limitType === 'cost_usd' ? MICROS : 1
  const exact = Number(digits) * (FACTORS[suffix.toLowerCase()] ?? 1) * unit
  const maxValue = Math.round(exact)
  if (Math.abs(exact - maxValue) > exact * ROUNDING)
    throw new UsageError(`--limit ${text} is too fine: use whole requests and tokens, and millionths of a dollar.`)
  if (maxValue < 1) throw new UsageError(`--limit ${text} allows nothing: MAX must be above 0.`)
  return { limitType, limitWindow, maxValue, modelFilter: model.join(':') }
}

/** `opus=gpt-5.5`, `sonnet=gpt-5.4:high`, or `default` alone. In `haiku=qwen3:8b` the model is `qwen3:8b`, because `8b` is not an effort. */
const parseClaudeModels = (choices: readonly string[]) => {
  if (choices.length === 1 && choices[0] === 'default') return null
  return Object.fromEntries(
    choices.map((choice) => {
      const [, size = '', model, effort = null] = CLAUDE_MODEL.exec(choice) ?? []
      if (model === undefined || !isOneOf(CLAUDE_SIZES, size))
        throw new UsageError(`--claude-model ${choice} is not SIZE=MODEL[:EFFORT]. Sizes: ${CLAUDE_SIZES.join(', ')}.`)
      return [size, { model, effort }]
    }),
  )
}

const CLAUDE_MODEL = new RegExp(`^(\\w+)=(.+?)(?::(${EFFORTS.join('|')}))?$`)

const isOneOf = (values: readonly string[], text: string): boolean => values.includes(text)

/** `Date.parse` alone accepts almost anything: `12` is December 2001. */
const Expiry = z.union([z.iso.date(), z.iso.datetime({ offset: true })])

/** A date alone is its start in UTC; `never` is null. */
const parseTime = (text: string): string | null => {
  if (text === 'never') return null
  if (!Expiry.safeParse(text).success)
    throw new UsageError(`--expires ${text} is not a date. Write 2027-01-31, 2027-01-31T18:00:00Z or never.`)
  const at = Date.parse(text)
  if (at <= systemClock.now()) throw new UsageError(`--expires ${text} is in the past.`)
  return iso(at)
}
