/** `/api/conversation-archive`, `/api/captures/:id/requests`, `/logs/captures/:id`, `/logs/:id/captured`: what captures hold. Reading a request leaves an audit row. */
import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import { type CapturedAnswer, CapturedPage, type CapturedTab, type CapturedView } from '../../views/logs/captured.tsx'
import { type CapturedList, CapturedListPage, type CapturedRow } from '../../views/logs/captured-list.tsx'
import { actor } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { originForLinks } from '../http/public-origin.ts'
import { query } from '../http/query.ts'
import { proceed, reply } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { SealError } from '../lib/seal.ts'
import { append } from '../model/audit/audit.ts'
import {
  type CapturedAttempt,
  type CapturedContent,
  type ListedRequest,
  listRequests,
  readRequest,
  streamCapturedBytes,
} from '../model/captures/archive.ts'
import { type CapturedEvent, getEvents, textOrBase64 } from '../model/captures/captured-events.ts'
import { getCurl } from '../model/captures/curl.ts'
import { keyNames } from '../model/log/request-log-choices.ts'
import { holds } from '../model/users/permissions.ts'
import { captureOf, captureView } from './captures.ts'
import { getFormFeedback } from './form-feedback.ts'
import { getHiddenFields } from './visibility.ts'

const ListQuery = z.object({
  captureId: z.string().max(60).optional().describe('Only requests of this capture.'),
  cursor: z.string().max(60).optional().describe('`nextCursor` of the previous page.'),
  limit: z.coerce.number().int().min(1).max(200).default(50).describe('Requests per page.'),
})
const ReadQuery = z.object({
  part: z.enum(['request', 'answer']).optional().describe('All bytes of one side instead of a document.'),
  q: z.string().max(200).default('').describe('Only events that contain this text.'),
})
const PageQuery = z.object({ cursor: z.string().max(60).optional() })
const TabQuery = z.object({ q: z.string().max(200).default('') })

const PAGE = 50
/** JSON responses contain at most this much of the request and of the answer. Downloads are complete. */
const MAX_JSON_BYTES = 4 * 1024 * 1024
/** The same on a page. */
const MAX_PAGE_BYTES = 512 * 1024
const MAX_PAGE_EVENTS = 1000

export const listCapturedRequests = createHandlers(requires('conversations:read'), query(ListQuery), async (c) => {
  const { captureId, cursor, limit } = c.req.valid('query')
  return c.json(await getPage(c, { captureId, cursor, limit }))
})

interface Wanted {
  captureId?: string | undefined
  cursor?: string | undefined
  limit: number
}

const getPage = async (c: Ctx, { captureId, cursor = undefined, limit }: Wanted) => {
  await c.env.captures.flush() // what has just arrived
  const of = captureId === undefined ? c.env.captures.list() : [captureOf(c, captureId)]
  const ids = of.map(({ id }) => id)
  const { items, next } = await listRequests(getArchive(c), ids, { cursor: cursor ?? null, limit })
  const names = await keysFor(c)
  return { items: items.map((item) => getRow(item, names)), nextCursor: next }
}

const getArchive = ({ env }: Ctx) => ({ dir: env.captures.dir, sealer: env.sealer })

type KeyNames = ReadonlyMap<string, string> | null

/** Null for users who may not see keys. */
const keysFor = async (c: Ctx): Promise<KeyNames> => {
  const { hidesKeys, scope } = getHiddenFields(c.var.principal)
  return hidesKeys ? null : new Map((await keyNames(c.env.db, scope)).map(({ id, name }) => [id, name]))
}

const getRow = ({ id, captureId, request, end, bytes }: ListedRequest, names: KeyNames): CapturedRow => ({
  id,
  captureId,
  requestedAt: request && iso(request.at),
  method: request?.method ?? null,
  path: request?.target ?? null,
  transport: request?.transport ?? null,
  requestKind: request?.requestKind ?? null,
  model: request?.model ?? null,
  keyId: (names && request?.keyId) ?? null,
  keyName: (request?.keyId && names?.get(request.keyId)) || null,
  status: end?.status ?? null,
  httpStatus: end?.httpStatus ?? null,
  errorCode: end?.errorCode ?? null,
  errorMessage: end?.errorMessage ?? null,
  bytes,
  droppedBytes: end?.droppedBytes ?? 0,
})

/** Throws `not_found`. */
export const showCapturedRequest = createHandlers(
  requires('conversations:read', { audit: 'captured_request_read' }),
  query(ReadQuery),
  async (c) => {
    const { part, q } = c.req.valid('query')
    const id = getPathId(c)
    const content = await getContent(c, id, part ? 0 : MAX_JSON_BYTES)
    await recordRead(c, content)
    if (!part) return c.json(await getView(c, content, { q, maxEvents: Number.POSITIVE_INFINITY }))
    const attempts = content.attempts.length
    const stream = streamCapturedBytes(getArchive(c), content.captureId, { id, side: part, attempts })
    return new Response(stream, {
      headers: {
        'content-type': 'application/octet-stream',
        'content-disposition': `attachment; filename="${id}-${part}.txt"`,
        'x-content-type-options': 'nosniff',
      },
    })
  },
)

/** The tab “Captured” of a request, as a page or in the drawer. Throws `not_found`. */
export const showCapturedTab = createHandlers(
  requires('conversations:read', { audit: 'captured_request_read' }),
  query(TabQuery),
  async (c) => {
    const { q } = c.req.valid('query')
    const content = await getContent(c, getPathId(c), MAX_PAGE_BYTES)
    await recordRead(c, content)
    const all = await getView(c, content, { q, maxEvents: Number.POSITIVE_INFINITY })
    const shown = await getView(c, content, { q, maxEvents: MAX_PAGE_EVENTS })
    const value: CapturedTab = {
      ...shown,
      generatedAt: iso(c.env.clock.now()),
      q,
      moreEvents: countEvents(all) - countEvents(shown),
      isGuard: holds(c.var.principal.grants, 'security:write'),
    }
    return reply(c, value, CapturedPage)
  },
)

const countEvents = ({ attempts }: CapturedView): number =>
  attempts.reduce((sum, { events }) => sum + (events?.length ?? 0), 0)

const getContent = async (c: Ctx, id: string, maxBytes: number): Promise<CapturedContent> => {
  await c.env.captures.flush() // what has just arrived
  const [capture] = c.env.captures.holding(id)
  const content = capture && (await readRequest(getArchive(c), capture.id, { id, maxBytes }).catch(asUnreadable))
  if (content) return content
  throw new AppError('not_found', { message: 'This request was not captured, or its capture has been deleted.' })
}

const asUnreadable = (cause: unknown): never => {
  if (!(cause instanceof SealError)) throw cause
  throw new AppError('not_found', {
    message: 'This captured request cannot be decrypted: its file was changed, or encrypted with another key file.',
    cause,
  })
}

const recordRead = async (c: Ctx, { id, captureId }: CapturedContent): Promise<void> => {
  const who = actor(c)
  await commit(c.env.db, (tx) =>
    append(tx, who, 'captured_request_read', { target: id, details: { capture: captureId } }),
  )
}

const getView = async (c: Ctx, content: CapturedContent, { q, maxEvents }: EventFilter): Promise<CapturedView> => {
  const { body, attempts, isCut, request } = content
  const bytes = Buffer.concat(body)
  const { text, base64 } = textOrBase64(bytes)
  const headers = request?.headers ?? []
  const bodyBytes = request?.bodyBytes ?? 0
  const { method = '', target = '' } = request ?? {}
  const isWhole = bytes.length === bodyBytes
  return {
    ...getRow(content, await keysFor(c)),
    request: { headers: headers.map(named), body: text, bodyBase64: base64, bodyBytes },
    attempts: attempts.map((attempt) => getAnswer(c, attempt, { q, maxEvents })),
    isCut,
    curl:
      request &&
      getCurl({ origin: originForLinks(c), method, target, headers, body: isWhole ? text : null, bodyBytes }),
  }
}

interface EventFilter {
  q: string
  maxEvents: number
}

const getAnswer = (c: Ctx, attempt: CapturedAttempt, { q, maxEvents }: EventFilter): CapturedAnswer => {
  const { accountId, source, at, status, headers, error, parts } = attempt
  const { hidesAccounts } = getHiddenFields(c.var.principal)
  const events = getEvents(parts)
  const { text, base64 } = events ? NO_BODY : textOrBase64(Buffer.concat(parts.map(({ bytes }) => bytes)))
  return {
    accountId: hidesAccounts ? null : accountId,
    accountName: hidesAccounts || accountId === null ? null : (c.env.pool.get(accountId)?.displayName ?? null),
    sourceId: source?.id ?? null,
    sourceName: source?.name ?? null,
    startedAt: iso(at),
    status,
    error,
    headers: headers.map(named),
    body: text,
    bodyBase64: base64,
    events:
      events
        ?.filter(has(q))
        .slice(0, maxEvents)
        .map((event) => ({ ...event, at: iso(event.at) })) ?? null,
  }
}

const NO_BODY = { text: null, base64: null }

const named = ([name, value]: [string, string]) => ({ name, value })

const has = (q: string) => {
  const wanted = q.toLowerCase()
  return ({ type, data }: CapturedEvent): boolean => `${type} ${data}`.toLowerCase().includes(wanted)
}

/** Throws `not_found`. */
export const deleteCapturedRequest = createHandlers(
  requires('security:write', { audit: 'captured_request_deleted' }),
  async (c) => {
    const id = getPathId(c)
    const { captures, db } = c.env
    const holding = captures.holding(id)
    if (holding.length === 0)
      throw new AppError('not_found', { message: 'This request was not captured, or its capture has been deleted.' })
    const who = actor(c)
    const details = { captures: holding.map((capture) => capture.id) }
    await captures.removeRequest(id)
    await commit(db, (tx) => append(tx, who, 'captured_request_deleted', { target: id, details }))
    return proceed(c, { status: 'deleted' }, `/logs/captures/${holding[0]?.id}?done=captured_request_deleted`)
  },
)

/** Deletes a capture with all its requests, and ends it if it runs. Throws `not_found`. */
export const deleteCapture = createHandlers(
  requires('security:write', { audit: 'captured_requests_deleted' }),
  async (c) => {
    const capture = captureOf(c, getPathId(c))
    const who = actor(c)
    const { id, bytes, requests } = capture
    await c.env.captures.remove(capture)
    await commit(c.env.db, (tx) =>
      append(tx, who, 'captured_requests_deleted', { target: id, details: { bytes, requests } }),
    )
    return proceed(c, { status: 'deleted' }, '/logs/captures?done=captured_requests_deleted')
  },
)

/** `GET /logs/captures/:id`. Throws `not_found`. */
export const showCapturedList = createHandlers(requires('conversations:read'), query(PageQuery), async (c) => {
  const { cursor } = c.req.valid('query')
  const { items, nextCursor } = await getPage(c, { captureId: getPathId(c), cursor, limit: PAGE })
  const capture = await captureView(c, captureOf(c, getPathId(c)))
  const { done, problem } = getFormFeedback(c)
  const value: CapturedList = {
    generatedAt: iso(c.env.clock.now()),
    capture,
    items,
    older: nextCursor && `/logs/captures/${capture.id}?cursor=${nextCursor}`,
    done,
    problem,
  }
  return reply(c, value, CapturedListPage)
})
