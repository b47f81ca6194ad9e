/** The model catalog: `GET /backend-api/codex/models` for native clients, `GET /v1/models` and `…/:id` for OpenAI SDKs. */
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { clientKey, messagesKey, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { isInUse } from '../../model/accounts/account-state.ts'
import { anthropicModel } from '../../model/catalog/anthropic-models.ts'
import type { Listing } from '../../model/catalog/catalog.ts'
import { claudeModel } from '../../model/catalog/claude-models.ts'
import { isClientVersion, PINNED_CLIENT_VERSION } from '../../model/catalog/client-version.ts'
import { refreshCatalogs } from '../../upstream/models.ts'

const gates = () => [clientKey('optional'), restricted('local')] as const
/** Anthropic SDKs use this route too. */
const publicGates = () => [messagesKey('optional'), restricted('local')] as const

const isForAnthropic = (c: Ctx): boolean => c.req.header('anthropic-version') !== undefined

export const nativeModels = createHandlers(...gates(), (c) => answerNative(c, c.req.query('client_version') ?? null))

/** `client_version` is sent by a native client that uses this base URL. */
export const publicModels = createHandlers(...publicGates(), async (c) => {
  const version = c.req.query('client_version')
  if (version !== undefined) return answerNative(c, version)
  if (!isForAnthropic(c)) return send(c, await getPublicModels(c))
  await untilKnown(c)
  return send(c, c.env.catalog.anthropic(c.var.client.key))
})

/** The models the client may use, as OpenAI SDKs list them. */
export const getPublicModels = async (c: Ctx): Promise<Listing> => {
  await untilKnown(c)
  return c.env.catalog.public(c.var.client.key)
}

/** Throws `model_not_found`. */
export const publicModel = createHandlers(...publicGates(), async (c) => {
  await untilKnown(c)
  const slug = c.req.param('id') ?? ''
  const { catalog, settings } = c.env
  const { key } = c.var.client
  const { claudeModels } = settings.current()
  const isAnthropic = isForAnthropic(c)
  const served = isAnthropic ? (claudeModel(catalog, slug, { policy: key, claudeModels })?.slug ?? slug) : slug
  const model = catalog.find(served, key)
  if (!model) throw new AppError('model_not_found', { message: `The model '${slug}' does not exist.`, param: 'model' })
  return c.json(isAnthropic ? anthropicModel(model, slug) : model)
})

/** Fetches the catalog of a new client version while the client waits; otherwise answers with the nearest version. */
const answerNative = async (c: Ctx, asked: string | null): Promise<Response> => {
  const version = asked !== null && isClientVersion(asked) ? asked : null
  await untilKnown(c, version)
  return send(c, c.env.catalog.native(version, c.var.client.key))
}

const PATIENCE_MS = 4000

/**
 * Waits until `version` is known, if given, and until there is any catalog: clients may come before the first accounts
 * have answered.
 */
const untilKnown = (c: Ctx, version: string | null = null): Promise<void> => {
  const work = async () => {
    if (version !== null) await fetchVersion(c, version)
    if (c.env.catalog.isEmpty) await fetchVersion(c, PINNED_CLIENT_VERSION)
    if (c.env.catalog.isEmpty) await fetchVersion(c, PINNED_CLIENT_VERSION, 'oldest')
  }
  return atMost(c, PATIENCE_MS, work())
}

/** Models depend on the plan, so one account per plan is enough; the catalog job covers the others. */
const fetchVersion = (c: Ctx, version: string, speaker: 'newest' | 'oldest' = 'newest'): Promise<void> => {
  const { pool, catalog, proxyDeps, db, clock, log } = c.env
  const inUse = pool.all().filter(({ state }) => isInUse(state))
  if (inUse.length === 0) return Promise.resolve()
  // The newest account of a plan is last in the pool. When older ones failed, it has not been tried yet.
  const ordered = speaker === 'newest' ? inUse : inUse.toReversed()
  const accountIds = [...new Map(ordered.map(({ planType, id }) => [planType, id])).values()]
  return catalog.ensure(version, { accountIds, now: clock.monotonic() }, (unasked) =>
    refreshCatalogs(
      { ...proxyDeps.upstream, credentials: proxyDeps.credentials, db, log },
      { accountIds: unasked, versions: [version] },
    ),
  )
}

/** Waits until there is any catalog. */
export const untilCatalogKnown = (c: Ctx): Promise<void> | void => (c.env.catalog.isEmpty ? untilKnown(c) : undefined)

const atMost = (c: Ctx, ms: number, work: Promise<void>): Promise<void> => {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const cancel = c.env.clock.after(ms, resolve)
  return Promise.race([work, late]).finally(cancel)
}

/** Never a 304: native clients send no `If-None-Match` and compare the tag themselves (Codex CLI 0.169). */
const send = (c: Ctx, { bytes, etag }: Listing): Response =>
  c.body(bytes, 200, { 'content-type': 'application/json', etag })
