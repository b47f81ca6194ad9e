/** Reads request bodies: one schema for a JSON document and for the form that edits it. */
import type { Context } from 'hono'
import { validator } from 'hono/validator'
import type { z } from 'zod'
import { AppError } from '../errors.ts'
import { IDLE_SECONDS } from '../lib/idle-limit.ts'
import { createMiddleware } from './handlers.ts'
import { readUpload } from './upload.ts'

/** Twice the longest form. */
const MAX_BYTES = 1024 * 1024
/** For open routes; a passkey response is the largest, at some KB. These bodies count against no budget. */
const MAX_OPEN_ROUTE_BYTES = 64 * 1024
/** Enough for any reader; a hundred thousand invalid fields must not produce an answer many times that long. */
const MAX_FIELDS = 50
/** More than the longest form has. Parsing hundreds of thousands would block all streams. */
const MAX_FORM_FIELDS = 4000

/**
 * Parses the body as JSON or as a form; the handler reads `c.req.valid('json')` either way. An empty body is `{}`. A
 * body can be sent slowly, so the gate is checked again afterwards. Throws `validation_error` with `details.fields`,
 * `malformed_json`, `unsupported_media_type`, `payload_too_large`, `invalid_request_error` for an ambiguous multipart
 * boundary.
 */
export const body = <S extends z.ZodObject>(schema: S) => {
  const validate = validator('json', async (json, c): Promise<z.output<S>> => {
    const type = mediaType(c.req.header('content-type'))
    const isForm = type.includes('form')
    // The validator reads only JSON types and returns `{}` for others, which must not pass as an empty document.
    if (!isForm && !isJson(type) && (await c.req.text()) !== '') throw new AppError('unsupported_media_type')
    if (!isForm) return parse(schema, json)
    const form = await readForm(c, { dot: true }).catch((cause: unknown) => {
      if (cause instanceof AppError) throw cause
      throw new AppError('validation_error', {
        message: 'The form could not be read. Reload the page and try again.',
        cause,
      })
    })
    c.set('typed', form)
    return parse(schema, fromForm(schema, form))
  })
  const limited = (...[c, next]: Parameters<typeof validate>) =>
    (c.get('principal') ? withinLimit : withinOpenRouteLimit)(c, async () => {
      await validate(c, async () => {
        await c.get('passAgain')?.(c)
        await next()
      })
    })
  // as: the response is in the context by then, not in the middleware's return value
  return withInput(limited as typeof validate, { in: 'body', schema })
}

/**
 * The fields of a form. Throws `payload_too_large` for too many, `invalid_request_error` for an ambiguous boundary, and
 * other errors for malformed forms.
 */
export const readForm = async ({ req }: Context, options: { dot?: boolean } = {}) => {
  const bytes = Buffer.from(await req.arrayBuffer()) // Hono caches it for the parser
  if (fieldsIn(bytes, req.header('content-type') ?? '') > MAX_FORM_FIELDS)
    throw new AppError('payload_too_large', { message: `A form can have at most ${MAX_FORM_FIELDS} fields.` })
  return req.parseBody({ all: true, ...options })
}

/**
 * What browsers and libraries send. Stricter than the runtime's parser, which takes the first of two boundaries, keeps
 * blanks, and accepts `application/x-www-form-urlencoded` anywhere in the type.
 */
const MULTIPART =
  /^multipart\/form-data *;(?: *charset=[\w-]+ *;)? *boundary=("?)(?<boundary>[\w'+.:=-]+)\1(?: *; *charset=[\w-]+)?;?$/i

const fieldsIn = (bytes: Buffer, type: string): number => {
  if (mediaType(type) !== 'multipart/form-data') return getCount(bytes, '&') + 1
  const boundary = MULTIPART.exec(type)?.groups?.boundary
  if (boundary === undefined)
    throw new AppError('invalid_request_error', {
      message: 'The Content-Type of a multipart form must name exactly one boundary.',
    })
  return getCount(bytes, `--${boundary}`) - 1
}

/** Stops counting above the limit. */
const getCount = (bytes: Buffer, separator: string): number => {
  let count = 0
  for (let at = bytes.indexOf(separator); at !== -1 && count < MAX_FORM_FIELDS + 2; count++)
    at = bytes.indexOf(separator, at + separator.length)
  return count
}

/** What a route reads, and where: data on the validating middleware, for the route table. */
export interface RouteInput {
  in: 'body' | 'query'
  schema: z.ZodObject
}

/** Attaches `input` to `middleware` for the route table. */
export const withInput = <M extends object>(middleware: M, input: RouteInput): M & { readonly input: RouteInput } =>
  Object.assign(middleware, { input: Object.freeze(input) })

/**
 * Reads the body for the handler to parse. A larger declared size is rejected unread. Throws `payload_too_large`, and
 * what `readUpload` does.
 */
export const maxBody = (maxBytes: number) =>
  createMiddleware(async ({ req, env }, next) => {
    if (req.raw.body) {
      const requireFits = (bytes: number) => {
        if (bytes > maxBytes) throw new AppError('payload_too_large')
      }
      requireFits(Number(req.header('content-length')))
      const bytes = await readUpload({ env, request: req.raw, arrived: requireFits })
      env.server?.timeout(req.raw, IDLE_SECONDS)
      Object.assign(req.bodyCache, { arrayBuffer: Promise.resolve(exactly(bytes)) }) // its type leaves out the promise
    }
    await next()
  })

/** An exact copy if the underlying buffer is larger. */
const exactly = ({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>): ArrayBuffer =>
  buffer.byteLength === byteLength ? buffer : buffer.slice(byteOffset, byteOffset + byteLength)

const withinLimit = maxBody(MAX_BYTES)
const withinOpenRouteLimit = maxBody(MAX_OPEN_ROUTE_BYTES)

/** `input` parsed with the schema. Throws `validation_error` with `details.fields`: path → messages. */
export const parse = <S extends z.ZodType>(schema: S, input: unknown): z.output<S> => {
  const parsed = schema.safeParse(input)
  if (!parsed.success) throw invalid(parsed.error)
  return parsed.data
}

/** zod's first issues as `details.fields`; `param` is the first one. */
export const invalid = (error: z.core.$ZodError): AppError => {
  const messages = error.issues.values().flatMap(namedMessages).take(MAX_FIELDS)
  const named = Map.groupBy(messages, ([name]) => name)
  // From entries, because a body may name a field `__proto__`.
  const fields = Object.fromEntries([...named].map(([name, pairs]) => [name, pairs.map(([, message]) => message)]))
  return new AppError('validation_error', { param: Object.keys(fields)[0], details: { fields } })
}

/**
 * Converts form text to the types of `schema`: `"90"` becomes a number, the last of a hidden `false` and a checked
 * `true` counts, an empty nullable field is null. Anything else is left for the schema to reject.
 */
export const fromForm = (schema: z.ZodObject, form: Record<string, unknown>): unknown => coerce(schema, form)

const mediaType = (header: string | undefined): string => header?.split(';')[0]?.trim().toLowerCase() ?? ''

const isJson = (type: string): boolean => /^application\/([\w.-]+\+)?json$/.test(type)

/** zod reports unknown keys at the containing object; this reports them at the key. */
function* namedMessages(issue: z.core.$ZodIssue): Generator<[name: string, message: string]> {
  if (issue.code !== 'unrecognized_keys') yield [issue.path.join('.'), issueText(issue)]
  else for (const key of issue.keys) yield [[...issue.path, key].join('.'), 'is not a field of this request']
}

const coerce = (schema: z.core.$ZodType, value: unknown): unknown => {
  const { def } = (schema as z.core.$ZodTypes)._zod // as: zod's own union, distinguished by `type`
  switch (def.type) {
    case 'object':
      return coerceObject(def.shape, value)
    case 'array':
      return asList(value).map((item) => coerce(def.element, item))
    case 'nullable':
      return last(value) === '' ? null : coerce(def.innerType, value)
    case 'optional':
    case 'default':
    case 'readonly':
    case 'catch':
      return coerce(def.innerType, value)
    case 'pipe':
      return coerce(def.in, value)
    case 'number':
      return asNumber(last(value))
    case 'boolean':
      return asBoolean(last(value))
    case 'union':
      return coerceUnion(def.options, value)
    case 'enum':
    case 'literal':
      return last(value) === '' ? undefined : last(value)
    default:
      return last(value)
  }
}

const coerceObject = (shape: Readonly<Record<string, z.core.$ZodType>>, value: unknown): unknown => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const fields = Object.entries(value).map(([name, text]): [string, unknown] => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined
    return [name, field ? coerce(field, text) : text]
  })
  return Object.fromEntries(fields.filter(([, field]) => field !== undefined))
}

/** Accepts a keyword, such as `all`, or a list. */
const coerceUnion = (options: readonly z.core.$ZodType[], value: unknown): unknown => {
  const isWord = options.some((option) => {
    const { def } = (option as z.core.$ZodTypes)._zod // as: zod's own union, distinguished by `type`
    return def.type === 'literal' && def.values.some((word) => word === value)
  })
  const hasList = options.some((option) => option._zod.def.type === 'array')
  return isWord || !hasList ? last(value) : asList(value)
}

const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]).filter((item) => item !== '')

const last = (value: unknown): unknown => (Array.isArray(value) ? value.at(-1) : value)

const asNumber = (text: unknown): unknown => {
  if (typeof text !== 'string') return text
  const trimmed = text.trim()
  if (trimmed === '') return undefined
  const number = Number(trimmed)
  return Number.isFinite(number) ? number : text
}

const BOOLEANS: Readonly<Record<string, boolean>> = {
  true: true,
  on: true,
  '1': true,
  false: false,
  off: false,
  '0': false,
}

const asBoolean = (text: unknown): unknown =>
  typeof text === 'string' && Object.hasOwn(BOOLEANS, text) ? BOOLEANS[text] : text

/** Zod's own texts are for programmers. */
const issueText = (issue: z.core.$ZodIssue): string => {
  if (issue.code === 'invalid_value' && issue.message.startsWith('Invalid option')) return choiceText(issue.values)
  if (issue.code === 'invalid_format') return FORMATS[issue.message] ?? issue.message
  return issue.message
}

const FORMATS: Readonly<Record<string, string>> = {
  'Invalid ISO datetime': 'enter a date and time like 2026-01-31T18:30:00Z',
  'Invalid ISO date': 'enter a date like 2026-01-31',
}

const choiceText = (values: readonly unknown[]): string => {
  const names = values.map(String)
  return names.length < 2
    ? `only ${names.join()} is possible`
    : `choose ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
}
