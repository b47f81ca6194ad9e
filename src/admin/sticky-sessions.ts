/**
 * `/settings/routing/sessions` and `/api/sticky-sessions`: which account each conversation stays on, and releasing an
 * account.
 */
import { z } from 'zod'
import {
  type StickyPage,
  StickyPageView,
  type StickySessionsPage,
  type StickySort,
} from '../../views/settings/sessions.tsx'
import { actor } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { body } from '../http/body.ts'
import { requires, writes } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { linkFrom } from '../http/link-from.ts'
import { getPathId } from '../http/path-id.ts'
import { query } from '../http/query.ts'
import { proceed, reply } from '../http/reply.tsx'
import { FEEDBACK_PARAMETERS, getPage } from '../http/return-path.ts'
import { unknownParameters } from '../http/unknown-parameters.ts'
import { DAY_MS } from '../lib/durations.ts'
import { IDLE_SECONDS } from '../lib/idle-limit.ts'
import { iso } from '../lib/iso.ts'
import { filled } from '../model/form-query.ts'
import { deleteMatching, deleteNamed, releaseAccount } from '../model/sticky/delete-sessions.ts'
import { STICKY_KINDS } from '../model/sticky/session-key.ts'
import { STICKY_SORTS, type StickyFilter } from '../model/sticky/sticky-sessions.ts'
import { mayWrite } from '../model/users/permissions.ts'
import { accountChoices } from './choices.ts'
import { back, getFormFeedback } from './form-feedback.ts'
import { toReader } from './reader-for-caller.ts'
import { getFrame } from './settings/frame.ts'

export const STICKY_PAGE = '/settings/routing/sessions'

/** The page with one account's sessions, or those of a key or conversation. */
export const stickyLink = (filter: { accountQuery: string } | { keyQuery: string }): string =>
  `${STICKY_PAGE}?${new URLSearchParams(filter)}`

const Text = z.string().trim().max(200).default('')
const TEXTS = {
  kind: '`conversation`: the account its requests go to; `ciphertext`: the account that produced a piece of reasoning.',
  staleOnly: 'Only sessions unused for longer than `conversationAffinityMaxAgeDays`, which are no longer followed.',
  accountQuery: 'Part of the name of the account, or its ID.',
  keyQuery: 'The beginning of the key, or a `conversationId` of the request log.',
}

const StickyQuery = z.object({
  kind: filled(z.enum(STICKY_KINDS)).describe(TEXTS.kind),
  staleOnly: filled(z.stringbool()).describe(TEXTS.staleOnly),
  accountQuery: Text.describe(TEXTS.accountQuery),
  keyQuery: Text.describe(TEXTS.keyQuery),
  sortBy: z.enum(STICKY_SORTS).default('updated_at').describe('`created_at` sorts by the last use, too.'),
  sortDir: z.enum(['asc', 'desc']).default('desc').describe('Direction.'),
  offset: z.coerce.number().int().min(0).max(1_000_000).default(0).describe('Rows to skip.'),
  limit: z.coerce.number().int().min(1).max(500).default(100).describe('Rows per page.'),
})
type StickyQuery = z.output<typeof StickyQuery>

export const listStickySessions = createHandlers(requires('ops:write'), query(StickyQuery), async (c) =>
  c.json(await getStickyPage(c, c.req.valid('query'))),
)

const getStickyPage = async (c: Ctx, asked: StickyQuery): Promise<StickyPage> => {
  const { sortBy, sortDir, offset, limit } = asked
  const { maxAgeMs, staleBefore } = getAges(c)
  const names = new Map(accountChoices(c).map(({ id, name }) => [id, name]))
  const { sessions, total, stale } = await toReader(c).stickySessions({
    ...getFilter(c, asked),
    sortBy,
    sortDir,
    offset,
    limit,
    accountOrder: [...names.keys()],
    staleBefore,
  })
  const entries = sessions.map(({ usedAt, accountId, ...session }) => ({
    ...session,
    displayName: null,
    accountId,
    accountName: names.get(accountId) ?? 'Deleted account',
    createdAt: null,
    updatedAt: iso(usedAt),
    expiresAt: iso(usedAt + maxAgeMs),
    isStale: usedAt < staleBefore,
  }))
  return { entries, stalePromptCacheCount: stale, total, hasMore: offset + entries.length < total }
}

const getAges = ({ env }: Ctx) => {
  const maxAgeMs = env.settings.current().conversationAffinityMaxAgeDays * DAY_MS
  return { maxAgeMs, staleBefore: env.clock.now() - maxAgeMs }
}

type Filters = Partial<Omit<StickyFilters, 'kind'>> & { kind?: StickyFilters['kind'] | null }
type StickyFilters = Pick<StickyQuery, 'kind' | 'staleOnly' | 'accountQuery' | 'keyQuery'>

/** Accounts are found by the names this user sees, so that hidden addresses cannot be searched for. */
const getFilter = (c: Ctx, { kind, staleOnly = false, accountQuery = '', keyQuery = '' }: Filters): StickyFilter => {
  const wanted = accountQuery.toLowerCase()
  const all = accountChoices(c)
  const found = all.filter(({ id, name }) => id === accountQuery || name.toLowerCase().includes(wanted))
  return {
    kind: kind ?? null,
    usedBefore: staleOnly ? getAges(c).staleBefore : null,
    accountIds: found.length === all.length ? null : found.map(({ id }) => id),
    key: keyQuery,
  }
}

/** Throws `validation_error` unless only expired sessions are to be deleted. */
export const purgeStickySessions = createHandlers(
  writes({ audit: 'sticky_sessions_deleted' }),
  body(
    z.strictObject({
      staleOnly: z
        .boolean()
        .refine((is) => is, 'must be true')
        .describe('Must be true.'),
    }),
  ),
  (c) => answerDeletion(c, { staleOnly: true }),
)

const MAX_NAMED = 500

const Named = z.strictObject({ kind: z.enum(STICKY_KINDS), key: z.string().max(200) })

/** A form sends `kind:key`. */
const NamedOrText = z.preprocess((value) => {
  if (typeof value !== 'string') return value
  const [kind, key] = value.split(':')
  return { kind, key }
}, Named)

const Deletion = z.strictObject({
  sessions: z
    .array(NamedOrText)
    .min(1, 'select at least one')
    .max(MAX_NAMED)
    .refine((all) => new Set(all.map(({ kind, key }) => `${kind}:${key}`)).size === all.length, 'names one twice')
    .describe(`\`{key, kind}\` of each, at most ${MAX_NAMED}, none twice.`),
})

export const deleteStickySessions = createHandlers(
  writes({ audit: 'sticky_sessions_deleted' }),
  body(Deletion),
  async (c) => {
    const { deleted, failed } = await deleteNamed(c.env, c.req.valid('json').sessions, actor(c))
    const answer = { deletedCount: deleted.length, deleted, failed: failed.map((one) => ({ ...one, reason: GONE })) }
    return proceed(c, answer, backTo(c, deleted.length))
  },
)

const GONE = 'sticky_session_not_found'

const DeletionFilter = z.strictObject({
  kind: z.enum(STICKY_KINDS).nullable().optional().describe(TEXTS.kind),
  staleOnly: z.boolean().default(false).describe(TEXTS.staleOnly),
  accountQuery: Text.describe(TEXTS.accountQuery),
  keyQuery: Text.describe(TEXTS.keyQuery),
})

export const deleteFilteredSessions = createHandlers(
  writes({ audit: 'sticky_sessions_deleted' }),
  body(DeletionFilter),
  (c) => answerDeletion(c, c.req.valid('json')),
)

const answerDeletion = async (c: Ctx, filters: Filters) => {
  const filter = getFilter(c, filters)
  const count = await getCount(c, filter)
  const deletedCount = await withoutIdleLimit(c, () => deleteMatching(c.env, filter, { actor: actor(c), count }))
  return proceed(c, { deletedCount }, backTo(c, deletedCount))
}

/** Throws `sticky_session_not_found`. */
export const deleteStickySession = createHandlers(writes({ audit: 'sticky_sessions_deleted' }), async (c) => {
  const named = { kind: c.req.param('kind') ?? '', key: c.req.param('key') ?? '' }
  const { deleted } = await deleteNamed(c.env, [named], actor(c))
  if (deleted.length === 0) throw new AppError('sticky_session_not_found')
  return proceed(c, { status: 'deleted' }, backTo(c, 1))
})

/** Throws `account_not_found`. */
export const releaseAccountSessions = createHandlers(writes({ audit: 'account_released' }), async (c) => {
  const accountId = getPathId(c)
  const count = await getCount(c, { kind: 'conversation', usedBefore: null, accountIds: [accountId], key: '' })
  const releasedCount = await withoutIdleLimit(c, () => releaseAccount(c.env, accountId, { actor: actor(c), count }))
  return proceed(c, { status: 'released', releasedCount }, back(c, 'account_released'))
})

/** A hundred thousand rows take about half a minute, in which nothing is sent. */
const withoutIdleLimit = async <T>({ env, req }: Ctx, work: () => Promise<T>): Promise<T> => {
  env.server?.timeout(req.raw, 0)
  try {
    return await work()
  } finally {
    env.server?.timeout(req.raw, IDLE_SECONDS)
  }
}

/** Read by a thread, which sees what is on disk. */
const getCount = async (c: Ctx, filter: StickyFilter): Promise<number> => {
  await c.env.ledger.flush()
  return toReader(c).countSticky(filter)
}

/** The page as it was filtered, from its beginning. */
const backTo = (c: Ctx, deleted: number): string => {
  const params = new URLSearchParams(getPage(c)?.pathname === STICKY_PAGE ? getPage(c)?.search : '')
  params.delete('offset')
  params.set('done', deleted === 0 ? 'sticky_sessions_deleted_none' : 'sticky_sessions_deleted')
  return `${STICKY_PAGE}?${params}`
}

/** The query of the page, which has fewer rows than the API. */
const PageQuery = StickyQuery.extend({ limit: StickyQuery.shape.limit.unwrap().default(50) })

export const showStickySessions = createHandlers(requires('ops:write'), query(PageQuery), async (c) => {
  const asked = c.req.valid('query')
  const page = await getStickyPage(c, asked)
  const { done, problem } = getFormFeedback(c)
  const value: StickySessionsPage = {
    ...page,
    frame: getFrame(c, 'routing'),
    now: iso(c.env.clock.now()),
    done,
    problem,
    asked,
    accounts: accountChoices(c),
    mayWrite: mayWrite(c.var.principal.grants),
    maxAgeDays: c.env.settings.current().conversationAffinityMaxAgeDays,
    links: getLinks(c, asked, page),
  }
  return reply(c, value, StickyPageView)
})

const FILTERS = ['kind', 'staleOnly', 'accountQuery', 'keyQuery']

const getLinks = (c: Ctx, asked: StickyQuery, { hasMore }: StickyPage): StickySessionsPage['links'] => {
  const dropped = [...FEEDBACK_PARAMETERS, ...unknownParameters(c, StickyQuery), 'offset']
  const link = (drop: readonly string[], add: Record<string, string> = {}) =>
    linkFrom(c, STICKY_PAGE, { drop: [...dropped, ...drop], add })
  const at = (offset: number) => link([], offset > 0 ? { offset: String(offset) } : {})
  const sortBy = (sort: StickySort) => {
    const isReversed = asked.sortBy === sort && asked.sortDir === FIRST_DIRECTION[sort]
    const sortDir = isReversed ? (FIRST_DIRECTION[sort] === 'asc' ? 'desc' : 'asc') : FIRST_DIRECTION[sort]
    return link(['sortBy', 'sortDir'], { sortBy: sort, sortDir })
  }
  return {
    clear: FILTERS.some((name) => c.req.query(name)) ? link(FILTERS) : null,
    newer: asked.offset > 0 ? at(Math.max(0, asked.offset - asked.limit)) : null,
    older: hasMore ? at(asked.offset + asked.limit) : null,
    sorts: { updated_at: sortBy('updated_at'), account: sortBy('account'), key: sortBy('key') },
  }
}

const FIRST_DIRECTION: Record<StickySort, 'asc' | 'desc'> = {
  updated_at: 'desc',
  created_at: 'desc',
  account: 'asc',
  key: 'asc',
}
