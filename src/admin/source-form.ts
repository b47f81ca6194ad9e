/** Model source forms: converts fields of a page to the bodies of the JSON routes. */
import type { Next } from 'hono'
import { z } from 'zod'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { body, fromForm, parse, withInput } from '../http/body.ts'
import type { Typed } from '../http/form-drafts.ts'
import { isObject, parseJson } from '../lib/json.ts'
import { SourceModelInput } from '../model/sources/source-input.ts'

/**
 * The body of a source route: JSON of `schema`, or a form that is converted and then validated by `schema`. The handler
 * reads `c.req.valid('json')` either way. Throws `invalid_model_source_payload` for fields, and what else `body` does.
 */
export const sourceBody = <S extends z.ZodObject>(schema: S) => {
  const asJson = body(schema)
  const asForm = body(z.looseObject({}))
  const either = async (c: Ctx, next: Next) => {
    try {
      if (!/form/.test(c.req.header('content-type') ?? '')) return await asJson(c as never, next) // as: the same context
      return await asForm(c as never, async () => {
        c.req.addValidatedData('json', parse(schema, getInput(schema, c.get('typed'))))
        await next()
      })
    } catch (err) {
      throw asPayloadError(err)
    }
  }
  return withInput(either as unknown as typeof asJson, asJson.input) // as: it provides the same value in the same place
}

const asPayloadError = (err: unknown): unknown => {
  if (!(err instanceof AppError) || err.code !== 'validation_error') return err
  const { param, details } = err.extra
  return new AppError('invalid_model_source_payload', {
    ...(param && { param }),
    ...(details && { details }),
    cause: err,
  })
}

/** An empty key field keeps the key; `removeApiKey` deletes it. Rows without a name, or marked, are left out. */
const getInput = (schema: z.ZodObject, typed: Typed): unknown => {
  const { models, add, apiKey, removeApiKey, ...fields } = typed
  const input = fromForm(schema, fields)
  const rows = isObject(models) ? Object.values(models).filter(isObject) : []
  const kept = rows.filter((row) => String(row.model ?? '').trim() !== '' && !isOn(row.remove))
  return {
    ...(input as object), // as: of an object
    ...(isOn(removeApiKey) ? { apiKey: null } : typeof apiKey === 'string' && apiKey !== '' && { apiKey }),
    ...(models !== undefined && { models: kept.map(({ remove, ...row }) => fromForm(SourceModelInput, row)) }),
    ...(add !== undefined && { addModels: [add].flat().flatMap((text) => parseJson(String(text)) ?? []) }),
  }
}

const isOn = (value: unknown): boolean => [value].flat().at(-1) === 'true'
