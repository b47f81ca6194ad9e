/** `/api/model-sources/`: OpenAI-compatible servers beside the pool. */
import { commit } from '../../db/commit.ts'
import { DiscoverPage } from '../../views/settings/source-discover.tsx'
import { actor, requireStepUp, requireWrite } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { requires, writes } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { proceed, reply } from '../http/reply.tsx'
import { representation } from '../http/representation.ts'
import { storeTest } from '../model/sources/source-health.ts'
import { NewSource, SourcePatch } from '../model/sources/source-input.ts'
import { createSource, deleteSource, getSource, listSources, updateSource } from '../model/sources/source-rows.ts'
import { toSource } from '../model/sources/source-view.ts'
import { sourceOf } from '../model/sources/sources.ts'
import { holds } from '../model/users/permissions.ts'
import { getBaseUrl } from '../upstream/source-address.ts'
import { readModels } from '../upstream/source-models.ts'
import { testSource } from '../upstream/source-test.ts'
import { getFrame } from './settings-frame.ts'
import { sourceBody } from './source-form.ts'

/** `{sources}`, by name. */
export const listModelSources = createHandlers(requires('dashboard:read'), (c) => c.json({ sources: shownSources(c) }))

export const isManager = (c: Ctx): boolean => holds(c.var.principal.grants, 'ops:write')

export const shownSources = (c: Ctx) => listSources(c.env.db).map((row) => toSource(row, { isManager: isManager(c) }))

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
    const row = commit(c.env.db, (tx) => createSource(tx, { ...input, baseUrl }, getDoing(c)))
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
    const before = getSource(c.env.db, getPathId(c))
    const baseUrl = input.baseUrl === undefined ? undefined : storable(input.baseUrl)
    if (baseUrl !== undefined && baseUrl !== before.baseUrl) {
      requireConfirmation(c)
      await requireAllowed(c, baseUrl)
    }
    const row = commit(c.env.db, (tx) => updateSource(tx, getPathId(c), { ...input, baseUrl }, getDoing(c)))
    return proceed(c, toSource(row, { isManager: true }), `/settings/sources/${row.id}?done=model_source_updated`)
  },
)

/** Throws `not_found`. */
export const deleteModelSource = createHandlers(writes({ audit: 'model_source_deleted' }), (c) => {
  commit(c.env.db, (tx) => deleteSource(tx, getPathId(c), actor(c)))
  return proceed(c, null, '/settings/sources?done=model_source_deleted')
})

/** 200 also when the source fails: the result says how. The last result is stored. Throws `not_found`. */
export const testModelSource = createHandlers(writes({ audit: 'model_source_tested' }), async (c) => {
  const { db, sealer } = c.env
  const source = sourceOf(getSource(db, getPathId(c)), sealer)
  const who = actor(c)
  const result = await testSource(c.env, source, c.req.raw.signal)
  commit(db, (tx) => storeTest(tx, source, result, { ...who, at: c.env.clock.now() }))
  return proceed(c, result, `/settings/sources/${source.id}?done=model_source_${result.ok ? 'tested' : 'failed'}`)
})

/** What the source lists, as models that could be stored; stores nothing. Throws `not_found`, and what `readModels` does. */
export const discoverModels = createHandlers(writes(), async (c) => {
  const { db, sealer, clock } = c.env
  const row = getSource(db, getPathId(c))
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
