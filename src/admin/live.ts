/** `/api/events`: notifies every signed-in user of changes, limited by their permissions. */
import { z } from 'zod'
import { resolve } from '../auth/resolve.ts'
import type { Ctx } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { signedIn } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import { IDLE_SECONDS } from '../lib/idle-limit.ts'
import type { Claim } from '../lib/seats.ts'
import { encodeUtf8 } from '../lib/utf8.ts'
import type { Change, LiveTopic } from '../live.ts'
import { type Grants, holds, type Permission } from '../model/permissions.ts'

/** Topics are sent only to users with the permission. Key changes also reach users who see only their own. */
const NEEDS: Record<LiveTopic, Permission | null> = {
  accounts: 'accounts:read',
  usage: 'accounts:read',
  keys: 'api_keys:read',
  settings: null,
  people: 'users:manage',
  logs: 'dashboard:read',
  minute: 'dashboard:read',
  health: 'dashboard:read',
}

/** Browsers reconnect after this time. */
const RETRY_MS = 2000
/** Unread messages per client: about four minutes, after which it must reconnect. */
const MAX_UNREAD = 64
/**
 * Concurrent streams: in total, per user (all guests count as one), and per user and address, where a browser's tabs
 * share one.
 */
const MOST = 256
const MOST_OF_ONE = 64
const MOST_EACH = 8
const EventsQuery = z.object({
  since: z
    .string()
    .optional()
    .describe('The last `id` you received. Later changes are sent immediately. `Last-Event-ID` takes precedence.'),
})

/**
 * A message has topics but no content, so permissions and masking apply to what is fetched. The session is checked with
 * each heartbeat, and immediately when sessions or users change. Throws `busy` when too many listen.
 */
export const streamChanges = createHandlers(signedIn(), query(EventsQuery), (c) => {
  const leave = c.env.seats.take(claimsOf(c))
  if (!leave)
    throw new AppError('busy', { message: 'Too many dashboards are open. Close some tabs.', retryAfterSeconds: 30 })
  c.env.server?.timeout(c.req.raw, 0)
  return c.body(changesFor(c, leave), 200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
    'cache-control': 'no-store, no-transform',
  })
})

const claimsOf = (c: Ctx): Claim[] => {
  const { id } = c.var.principal
  return [
    { of: 'live', most: MOST },
    { of: `live ${id}`, most: MOST_OF_ONE },
    { of: `live ${id} ${c.var.clientIp}`, most: MOST_EACH },
  ]
}

const changesFor = (c: Ctx, giveBack: () => void): ReadableStream<Uint8Array> => {
  const { live } = c.env
  const who = c.var.principal.id
  let grants = c.var.principal.grants
  let stopListening = () => {}
  const leave = () => {
    stopListening()
    giveBack()
    c.env.server?.timeout(c.req.raw, IDLE_SECONDS)
  }
  const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const end = () => {
      leave()
      controller.close()
    }
    const send = (text: string) => {
      if ((controller.desiredSize ?? 0) < -MAX_UNREAD) end()
      else controller.enqueue(encodeUtf8(text))
    }
    const check = () => {
      const now = grantsNow(c, who)
      if (now) grants = now
      else {
        controller.enqueue(encodeUtf8(BYE))
        end()
      }
    }
    const changed = (change: Change) => {
      const topics = change.topics.filter((topic) => isFor(topic, grants))
      if (topics.length > 0) send(message('changed', { ...change, topics }))
    }
    stopListening = live.join({ changed, beat: () => send(BEAT), check })
    send(`retry: ${RETRY_MS}\n${message('hello', missed(c, grants))}`)
  }
  return new ReadableStream({ start, cancel: leave })
}

const BEAT = 'event: beat\ndata: .\n\n'
const BYE = 'event: bye\ndata: .\n\n'

const message = (event: string, { id, topics }: Change): string =>
  `id: ${id}\nevent: ${event}\ndata: ${topics.join(' ')}\n\n`

const isFor = (topic: LiveTopic, grants: Grants): boolean => {
  const need = NEEDS[topic]
  return need === null || holds(grants, need, topic === 'keys' ? 'own' : 'all')
}

/** The last message a browser saw, or the one of its page; without either, nothing was missed. */
const missed = (c: Ctx, grants: Grants): Change => {
  const { live } = c.env
  const seen = c.req.header('last-event-id') ?? c.req.query('since')
  const topics = seen === undefined ? [] : live.since(seen)
  return { id: live.lastId, topics: topics.filter((topic) => isFor(topic, grants)) }
}

/** The current permissions of `who`; null when the session ended or belongs to another user. */
const grantsNow = (c: Ctx, who: string): Grants | null => {
  const resolution = resolve(c)
  if (resolution.kind !== 'principal' || resolution.mustEnroll) return null
  return resolution.principal.id === who ? resolution.principal.grants : null
}
