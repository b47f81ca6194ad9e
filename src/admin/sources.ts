/** `/settings/sources` and `/api/model-sources`: OpenAI-compatible servers beside the accounts. */
import type { Next } from 'hono'
import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import {
  type NewSourceForm,
  NewSourcePage,
  type OneSource,
  type Page,
  SourcePage,
} from '../../views/settings/source.tsx'
import { DiscoverPage } from '../../views/settings/source-discover.tsx'
import { type SourceList, SourcesPage } from '../../views/settings/sources.tsx'
import { actor, requireStepUp, requireWrite } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { body, fromForm, parse, withInput } from '../http/body.ts'
import type { Typed } from '../http/form-drafts.ts'
import { requires, writes } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { proceed, reply } from '../http/reply.tsx'
import { representation } from '../http/representation.ts'
import { iso } from '../lib/iso.ts'
import { isObject, parseJson } from '../lib/json.ts'
import { storeTest } from '../model/sources/source-health.ts'
import { NewSource, SourceModelInput, SourcePatch } from '../model/sources/source-input.ts'
import { createSource, deleteSource, getSource, listSources, updateSource } from '../model/sources/source-rows.ts'
import { toSource } from '../model/sources/source-view.ts'
import { sourceOf } from '../model/sources/sources.ts'
import { holds, mayWrite } from '../model/users/permissions.ts'
import { getBaseUrl } from '../upstream/source-address.ts'
import { readModels } from '../upstream/source-models.ts'
import { testSource } from '../upstream/source-test.ts'
import { getFormFeedback } from './form-feedback.ts'
import { getFrame, settingsOfTab } from './settings/frame.ts'

/**
 * The body of a source route: JSON of `schema`, or a form that is converted and then validated by `schema`. The handler
 * reads `c.req.valid('json')` in both cases. Throws `invalid_model_source_payload` for fields, and otherwise the same
 * errors as `body`.
 */
const sourceBody = <S extends z.ZodObject>(schema: S) => {
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

/**
 * An empty key field keeps the key, and `removeApiKey` deletes it. Rows without a name and rows marked for removal are
 * left out.
 */
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

/** `{sources}`, by name. */
export const listModelSources = createHandlers(requires('dashboard:read'), async (c) =>
  c.json({ sources: await shownSources(c) }),
)

const isManager = (c: Ctx): boolean => holds(c.var.principal.grants, 'ops:write')

const shownSources = async (c: Ctx) =>
  (await listSources(c.env.db)).map((row) => toSource(row, { isManager: isManager(c) }))

const CHANGE = 'base URL or API key changes'

/** Throws `invalid_model_source_payload`, `name_taken`, and what a confirmation does. */
export const createModelSource = createHandlers(
  writes({ audit: 'model_source_created', sometimes: { permission: 'ops:write', when: CHANGE } }),
  sourceBody(NewSource),
  async (c) => {
    requireWrite(c.var.principal)
    const input = c.req.valid('json')
    requireConfirmation(c) // before any look-up of the host
    const baseUrl = storable(input.baseUrl)
    await requireAllowed(c, baseUrl)
    const row = await commit(c.env.db, (tx) => createSource(tx, { ...input, baseUrl }, getDoing(c)))
    return proceed(c, toSource(row, { isManager: true }), `/settings/sources/${row.id}?done=model_source_created`)
  },
)

/** Missing fields stay unchanged; `models` replaces the list. Throws as above, and `not_found`, `edit_conflict`. */
export const editModelSource = createHandlers(
  writes({ audit: 'model_source_updated', sometimes: { permission: 'ops:write', when: CHANGE } }),
  sourceBody(SourcePatch),
  async (c) => {
    requireWrite(c.var.principal)
    const input = c.req.valid('json')
    const before = await getSource(c.env.db, getPathId(c))
    const baseUrl = input.baseUrl === undefined ? undefined : storable(input.baseUrl)
    if (baseUrl !== undefined && baseUrl !== before.baseUrl) {
      requireConfirmation(c)
      await requireAllowed(c, baseUrl)
    }
    const row = await commit(c.env.db, (tx) => updateSource(tx, getPathId(c), { ...input, baseUrl }, getDoing(c)))
    return proceed(c, toSource(row, { isManager: true }), `/settings/sources/${row.id}?done=model_source_updated`)
  },
)

/** Throws `not_found`. */
export const deleteModelSource = createHandlers(writes({ audit: 'model_source_deleted' }), async (c) => {
  await commit(c.env.db, (tx) => deleteSource(tx, getPathId(c), actor(c)))
  return proceed(c, null, '/settings/sources?done=model_source_deleted')
})

/** 200 also when the source fails: the result says how. The last result is stored. Throws `not_found`. */
export const testModelSource = createHandlers(writes({ audit: 'model_source_tested' }), async (c) => {
  const { db, sealer } = c.env
  const source = sourceOf(await getSource(db, getPathId(c)), sealer)
  const who = actor(c)
  const result = await testSource(c.env, source, c.req.raw.signal)
  await commit(db, (tx) => storeTest(tx, source, result, { ...who, at: c.env.clock.now() }))
  return proceed(c, result, `/settings/sources/${source.id}?done=model_source_${result.ok ? 'tested' : 'failed'}`)
})

/** What the source lists, as models that could be stored; stores nothing. Throws `not_found`, and what `readModels` does. */
export const discoverModels = createHandlers(writes(), async (c) => {
  const { db, sealer, clock } = c.env
  const row = await getSource(db, getPathId(c))
  const start = clock.monotonic()
  const listed = await readModels(c.env, sourceOf(row, sealer), c.req.raw.signal)
  const known = new Set(row.models.map(({ model }) => model))
  const proposal = {
    sourceId: row.id,
    durationMs: Math.round(clock.monotonic() - start),
    models: listed.map((model) => ({ ...model, rawMetadataJson: null, isListed: known.has(model.model) })),
  }
  if (representation(c) === 'json') return c.json(proposal)
  const source = toSource(row, { isManager: true })
  return reply(c, { frame: getFrame(c, 'sources'), source, ...proposal }, DiscoverPage)
})

const getDoing = (c: Ctx) => ({
  actor: actor(c),
  random: c.env.random,
  sealer: c.env.sealer,
  requireConfirmation: () => requireConfirmation(c),
})

const requireConfirmation = (c: Ctx): void => requireStepUp(c.var.principal, c.env.clock.now())

/** The base URL as it is stored. */
const storable = (text: string): string => {
  const baseUrl = getBaseUrl(text)
  if (baseUrl === null) throw badUrl('enter an address like http://localhost:11434/v1, without user name and query')
  return baseUrl
}

const requireAllowed = async (c: Ctx, baseUrl: string): Promise<void> => {
  const problem = await c.env.sourceFetch.getProblem(baseUrl)
  if (problem !== null) throw badUrl(problem)
}

const badUrl = (problem: string): AppError =>
  new AppError('invalid_model_source_payload', { param: 'baseUrl', details: { fields: { baseUrl: [problem] } } })

const getPage = (c: Ctx): Page => ({
  frame: getFrame(c, 'sources'),
  now: iso(c.env.clock.now()),
  canWrite: mayWrite(c.var.principal.grants),
  ...getFormFeedback(c),
})

export const showSources = createHandlers(requires('dashboard:read'), async (c) =>
  reply(
    c,
    { ...getPage(c), sources: await shownSources(c), settings: await settingsOfTab(c, 'sources') } satisfies SourceList,
    SourcesPage,
  ),
)

export const showNewSource = createHandlers(writes(), (c) =>
  reply(c, getPage(c) satisfies NewSourceForm, NewSourcePage),
)

/** Throws `not_found`. */
export const showSource = createHandlers(requires('dashboard:read'), async (c) => {
  const source = toSource(await getSource(c.env.db, getPathId(c)), { isManager: isManager(c) })
  return reply(c, { ...getPage(c), source } satisfies OneSource, SourcePage)
})
