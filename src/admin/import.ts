/** `/api/import`: imports from other tools. First a plan is made, then you choose what to import. */
import { z } from 'zod'
import { type ImportPage, ImportPlanPage, type ShownItem } from '../../views/accounts/import.tsx'
import { actor, demand, requireStepUp, requireWrite } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { body, maxBody, readForm } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { query } from '../http/query.ts'
import { reply, replyAndOpen } from '../http/reply.tsx'
import { anyContains, parseCidr } from '../lib/cidr.ts'
import type { Draft } from '../lib/drafts.ts'
import { IDLE_SECONDS } from '../lib/idle-limit.ts'
import { mapInOrder } from '../lib/in-order.ts'
import { iso } from '../lib/iso.ts'
import { listEntries } from '../model/firewall.ts'
import { applyPlan, type Choice, chosenItems } from '../model/imports/apply.ts'
import type { Found, LeftOut } from '../model/imports/found.ts'
import { type ImportPlan, isInAll, makePlan, type PlanItem } from '../model/imports/plan.ts'
import { ITEM_KINDS, type ItemKind } from '../model/imports/words.ts'
import { holds, mayWrite } from '../model/users/permissions.ts'
import { type ImportFile, readImportFiles } from '../ops/import-files.ts'
import { getBaseUrl } from '../upstream/source-address.ts'
import { getFormFeedback } from './form-feedback.ts'
import { storeSettings } from './settings/settings.ts'

/** Larger databases must be imported on the command line, which reads the files directly. */
const MAX_BYTES = 128 * 1024 * 1024
const MAX_FILES = 1000
/** The most refresh tokens in one import. They are exchanged one per second. */
const MAX_EXCHANGES = 30
const MAX_ITEMS = 50_000

const HERE = '/accounts/import'

/** Plans the import of the files, without writing anything. The plan is kept for 24 hours. Throws `invalid_import`. */
export const planImport = createHandlers(requires('accounts:write'), maxBody(MAX_BYTES), async (c) => {
  const { db, sealer, clock, settings, importing, importPlans } = c.env
  const { files, passphrase } = await getUpload(c)
  await c.var.passAgain(c)
  const reading = { dir: importing.dir, clock, db, passphrase, format: null }
  const found = await importing.oneAtATime(() => readImportFiles(files, reading))
  const allowed = mayWrite(c.var.principal.grants) ? found : found.map(onlyAccounts)
  const assignsProxies = holds(c.var.principal.grants, 'security:write')
  const plan = await makePlan(db, allowed, { sealer, clock, settings: settings.current(), assignsProxies })
  return replyWithPlan(c, importPlans.keep(c.var.principal.id, plan))
})

const getUpload = async (c: Ctx): Promise<{ files: ImportFile[]; passphrase: string | null }> => {
  const form = await readForm(c).catch((cause: unknown) => {
    if (cause instanceof AppError) throw cause
    throw new AppError('invalid_import', { message: 'The upload is not a valid multipart form.', cause })
  })
  const parts = [form.files ?? []]
    .flat()
    .filter((part) => (typeof part === 'string' ? part.trim() !== '' : part.size > 0))
  if (parts.length === 0)
    throw new AppError('invalid_import', { message: 'Select the files to import.', param: 'files' })
  if (parts.length > MAX_FILES)
    throw new AppError('invalid_import', {
      message: `You can import at most ${MAX_FILES} files at a time.`,
      param: 'files',
    })
  const files = await mapInOrder(parts, async (part): Promise<ImportFile> => {
    if (typeof part === 'string') return { name: 'The pasted text', bytes: Buffer.from(part) }
    return { name: part.name || 'file', bytes: await part.bytes() }
  })
  const { passphrase } = form
  return { files, passphrase: typeof passphrase === 'string' && passphrase !== '' ? passphrase : null }
}

/** For users without write access, who must not learn what is stored here by comparing it with a file. */
const onlyAccounts = (found: Found): Found => {
  const { keys, sources, proxies, settings, firewall, history } = found
  const hidden: [ItemKind, number][] = [
    ['key', keys.length],
    ['source', sources.length],
    ['proxy', proxies.length],
    ['setting', settings.length],
    ['firewall', firewall.length],
    ['history', history ? 1 : 0],
  ]
  const leftOut = hidden.flatMap(([kind, count]): LeftOut[] =>
    count === 0 ? [] : [{ kind, label: String(count), reason: 'Only users with write access can import these.' }],
  )
  const none = { keys: [], sources: [], proxies: [], settings: [], firewall: [], history: null }
  return { ...found, ...none, leftOut: [...found.leftOut, ...leftOut] }
}

const Chosen = z.strictObject({
  items: z
    .union([z.literal('all'), z.array(z.string().max(12)).max(MAX_ITEMS)])
    .default([])
    .describe('The `id`s of plan items, or `"all"` for new and newer accounts, keys and model sources.'),
  rest: z
    .array(z.enum(['account', 'key', 'source']))
    .default([])
    .describe('Also imports all new and newer items of these kinds that are not on `page` of the plan.'),
  page: z.int().min(1).max(10_000).default(1).describe('The page whose items `rest` does not include.'),
  keys: z
    .record(z.string().max(12), z.string().max(4096))
    .default({})
    .describe('By item `id`: API keys of model sources whose key is in an environment variable.'),
  paused: z.boolean().default(false).describe('Pause the accounts that get tokens.'),
  replace: z.boolean().default(false).describe('Also replace tokens of chosen accounts that are as new or newer.'),
})

const SECURITY: readonly ItemKind[] = ['proxy', 'setting', 'firewall']

/**
 * Imports what is chosen. Each item is imported once. A repeated request returns its result, and the other items can be
 * imported later. Throws `import_not_found`, `would_lock_out`, `read_only_access` for keys, and the errors of a
 * confirmation for settings, firewall, proxies, accounts that are assigned to a proxy already here, and sources.
 */
export const runImport = createHandlers(
  requires('accounts:write', { audit: 'account_imported' }),
  body(Chosen),
  async (c) => {
    const draft = getDraft(c, getPathId(c))
    const { items, rest, page, keys, paused: isPaused, replace: replaces } = c.req.valid('json')
    const others = rest.flatMap((kind) => getRest(draft.content, kind, page))
    const choice: Choice = { items: items === 'all' ? items : [...items, ...others], isPaused, replaces, keys }
    const chosen = chosenItems(draft.content, choice)
    requireRights(c, chosen, draft.content)
    await requireReach(c, chosen)
    c.env.server?.timeout(c.req.raw, 0) // thousands of accounts take longer than the idle timeout
    try {
      await c.env.importPlans.update(draft, (plan) => applyPlan(plan, choice, getApplying(c)))
    } finally {
      c.env.server?.timeout(c.req.raw, IDLE_SECONDS)
    }
    return replyWithPlan(c, getDraft(c, draft.id))
  },
)

const requireRights = (c: Ctx, chosen: readonly PlanItem[], { knownProxies }: ImportPlan): void => {
  const { principal } = c.var
  const kinds = new Set(chosen.map(({ kind }) => kind))
  if (kinds.has('key') || kinds.has('source') || kinds.has('history')) requireWrite(principal)
  const isSecurity = SECURITY.some((kind) => kinds.has(kind))
  const assigns = chosen.some(
    ({ content }) => content?.kind === 'account' && knownProxies.has(content.found.extras.proxyKey ?? ''),
  )
  if (isSecurity || assigns) demand(principal, 'security:write')
  if (isSecurity || assigns || kinds.has('source')) requireStepUp(principal, c.env.clock.now())
}

/** Rejects a firewall list that would shut out the client that sends it. Throws `would_lock_out`. */
const requireReach = async (c: Ctx, chosen: readonly PlanItem[]): Promise<void> => {
  const added = chosen.flatMap(({ content }) => (content?.kind === 'firewall' ? [content.address] : []))
  const { address } = actor(c)
  if (added.length === 0 || !c.env.firewall.allows(address)) return
  const stored = (await listEntries(c.env.db)).map(({ ipAddress }) => ipAddress)
  const ranges = [...stored, ...added].flatMap((text) => parseCidr(text) ?? [])
  if (address === null || !anyContains(ranges, address))
    throw new AppError('would_lock_out', {
      message: `This firewall list would shut out ${address ?? 'the address you are using'}. Add it to the list first.`,
    })
}

const getApplying = (c: Ctx): Parameters<typeof applyPlan>[2] => {
  const { db, sealer, random, clock, importing, sourceFetch } = c.env
  const { principal } = c.var
  return {
    ...{ db, sealer, random, clock },
    actor: () => actor(c),
    scope: 'all',
    exchange: importing.exchange,
    maxExchanges: MAX_EXCHANGES,
    storeSettings: (tx, patch) => storeSettings(tx, patch, { principal, who: actor(c) }),
    getSourceAddress: async (text) => {
      const baseUrl = getBaseUrl(text)
      if (baseUrl === null) return { problem: 'This is not a base URL.' }
      const problem = await sourceFetch.getProblem(baseUrl)
      return problem === null ? { baseUrl } : { problem }
    },
  }
}

const Asked = z.object({
  plan: z.string().max(128).optional(),
  page: z.coerce.number().int().min(1).max(10_000).default(1),
})

export const showImportPlan = createHandlers(requires('accounts:write'), query(Asked), (c) => {
  const { plan, page } = c.req.valid('query')
  const { problem } = getFormFeedback(c)
  const value = plan ? toValue(c, getDraft(c, plan)) : null
  const view: ImportPage = { plan: value && { ...value, ...pageOf(value.items, page) }, problem }
  return reply(c, view, ImportPlanPage)
})

/** Throws `import_not_found`. */
const getDraft = (c: Ctx, id: string): Draft<ImportPlan> => {
  const draft = c.env.importPlans.get(id, c.var.principal.id)
  if (draft === null) throw new AppError('import_not_found')
  return draft
}

const replyWithPlan = (c: Ctx, draft: Draft<ImportPlan>): Response =>
  replyAndOpen(c, toValue(c, draft), `${HERE}?plan=${draft.id}`)

/** The plan without secrets, as the API returns it. */
const toValue = (c: Ctx, { id, expiresAt, content }: Draft<ImportPlan>) => ({
  id,
  expiresAt: iso(expiresAt),
  generatedAt: iso(c.env.clock.now()),
  sources: content.sources.map(({ format: kind, name, notes }) => ({ kind, name, notes })),
  items: content.items.map(toItem),
})

const toItem = (item: PlanItem): ShownItem => ({
  id: item.id,
  kind: item.kind,
  label: item.label,
  verdict: item.verdict,
  reason: item.reason,
  source: item.source,
  isSelected: isInAll(item) && item.content !== null,
  canSelect: item.content !== null && item.verdict !== 'broken',
  keyVariable: item.content?.kind === 'source' ? item.content.source.keyVariable : null,
  result: item.result,
})

const ROWS = 200

/** Sorts by kind. In each kind, the items that need a decision come first. */
const sorted = <I extends Pick<PlanItem, 'kind' | 'verdict'>>(items: readonly I[]): I[] =>
  items.toSorted(
    (a, b) =>
      ITEM_KINDS.indexOf(a.kind) - ITEM_KINDS.indexOf(b.kind) || ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict),
  )

const ORDER: readonly PlanItem['verdict'][] = ['broken', 'older', 'newer', 'new', 'same']

const pageOf = <I extends Pick<PlanItem, 'kind' | 'verdict'>>(items: readonly I[], page: number) => {
  const pages = Math.max(1, Math.ceil(items.length / ROWS))
  const shown = Math.min(page, pages)
  return { rows: sorted(items).slice((shown - 1) * ROWS, shown * ROWS), page: shown, pages }
}

/** IDs of the items that can be imported and are not on the page. */
const getRest = ({ items }: ImportPlan, kind: ItemKind, page: number): string[] => {
  const listed = new Set(pageOf(items, page).rows.map(({ id }) => id))
  return items.filter((item) => item.kind === kind && isInAll(item) && !listed.has(item.id)).map(({ id }) => id)
}
