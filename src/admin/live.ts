/** `/api/events`: what changed, to everybody who is signed in, as far as they may know that it exists. */
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

/** Whoever does not hold it is not told. Of keys also those are who see only their own. */
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

/** Browsers come back after so long. */
const RETRY_MS = 2000
/** Messages that a client may leave unread: about four minutes, then it has to come back. */
const MAX_UNREAD = 64
/** Streams at once: of all, of one person, as whom all guests count, and of them at one address, where all tabs of a browser share one. */
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
 * A message has topics and never content, so that permissions and masking hold in what is fetched after it. The session is
 * asked about again with each heartbeat, and at once when sessions or people changed. Throws `busy` when too many listen.
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

/** A browser says which message it saw last, or which one its page has; who says neither has seen everything. */
const missed = (c: Ctx, grants: Grants): Change => {
  const { live } = c.env
  const seen = c.req.header('last-event-id') ?? c.req.query('since')
  const topics = seen === undefined ? [] : live.since(seen)
  return { id: live.lastId, topics: topics.filter((topic) => isFor(topic, grants)) }
}

/** What `who` may do by now; null when the session is over, or somebody else's. */
const grantsNow = (c: Ctx, who: string): Grants | null => {
  const resolution = resolve(c)
  if (resolution.kind !== 'principal' || resolution.mustEnroll) return null
  return resolution.principal.id === who ? resolution.principal.grants : null
}
