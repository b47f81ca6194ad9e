/** `/api/events`: notifies every signed-in user of changes, limited by their permissions. */
import { z } from 'zod'
import type { Principal } from '../auth/principal.ts'
import { resolve } from '../auth/resolve.ts'
import { OWN_LIVE_ID, seesOnlyOwnKeys } from '../auth/view-scope.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { signedIn } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import type { Claim } from '../lib/concurrency-limits.ts'
import { IDLE_SECONDS } from '../lib/idle-limit.ts'
import { encodeUtf8 } from '../lib/utf8.ts'
import type { Change, LiveTopic } from '../live.ts'
import { keysState } from '../model/keys/api-keys.ts'
import { holds, type Permission } from '../model/users/permissions.ts'

/** Topics are sent only to users with the permission. `own`: also to users who hold it for own keys. */
const NEEDS: Record<LiveTopic, { permission: Permission; own?: true } | null> = {
  accounts: { permission: 'accounts:read' },
  usage: { permission: 'accounts:read' },
  keys: { permission: 'api_keys:read', own: true },
  settings: null,
  people: { permission: 'users:manage' },
  logs: { permission: 'dashboard:read', own: true },
  minute: { permission: 'dashboard:read', own: true },
  health: { permission: 'dashboard:read' },
  automations: { permission: 'dashboard:read' },
  alerts: { permission: 'dashboard:read' },
}
/** Topics about keys: users who see only their own get them when one of those changed. */
const ABOUT_KEYS: readonly LiveTopic[] = ['keys', 'logs']

/** Browsers reconnect after this time. */
const RETRY_MS = 2000
/** Unread messages per client: about four minutes, after which it must reconnect. */
const MAX_UNREAD = 64
/**
 * Concurrent streams: in total, per user (all guests count as one), and per user and address, where each visible tab
 * has one.
 */
const MOST = 256
const MAX_OF_ONE = 64
const MAX_EACH = 8
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
export const streamChanges = createHandlers(signedIn(), query(EventsQuery), async (c) => {
  const ownKeys = await ownKeysState(c, c.var.principal) // before the seat is taken, which an error would leave taken
  const leave = c.env.seats.take(getClaims(c))
  if (!leave)
    throw new AppError('busy', { message: 'Too many dashboards are open. Close some tabs.', retryAfterSeconds: 30 })
  c.env.server?.timeout(c.req.raw, 0)
  return c.body(changesFor(c, ownKeys, leave), 200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
    'cache-control': 'no-store, no-transform',
  })
})

const getClaims = (c: Ctx): Claim[] => {
  const { id } = c.var.principal
  return [
    { of: 'live', most: MOST },
    { of: `live ${id}`, most: MAX_OF_ONE },
    { of: `live ${id} ${c.var.clientIp}`, most: MAX_EACH },
  ]
}

const changesFor = (c: Ctx, ownKeysBefore: string | null, giveBack: () => void): ReadableStream<Uint8Array> => {
  const { live } = c.env
  const who = c.var.principal.id
  let { principal } = c.var
  let ownKeys = ownKeysBefore
  let stopListening = () => {}
  let isOver = false
  const leave = () => {
    isOver = true
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
      if (isOver) return
      if ((controller.desiredSize ?? 0) < -MAX_UNREAD) end()
      else controller.enqueue(encodeUtf8(text))
    }
    const check = async () => {
      const now = await principalNow(c, who)
      if (now) principal = now
      else if (!isOver) {
        controller.enqueue(encodeUtf8(BYE))
        end()
      }
    }
    const changed = async (change: Change) => {
      const before = ownKeys
      if (change.topics.some((topic) => ABOUT_KEYS.includes(topic))) ownKeys = await ownKeysState(c, principal)
      const isOthers = ownKeys !== null && ownKeys === before
      const topics = change.topics.filter(
        (topic) => isFor(topic, principal) && !(isOthers && ABOUT_KEYS.includes(topic)),
      )
      if (topics.length > 0) send(message('changed', { id: idFor(principal, change.id), topics }))
    }
    let last = Promise.resolve()
    /** One after another, as they came. */
    const inOrder = (work: () => Promise<void>) => {
      last = last.then(work).catch((err: unknown) => c.env.log.error('a live stream could not be updated', { err }))
    }
    stopListening = live.join({
      changed: (change) => inOrder(() => changed(change)),
      beat: () => send(BEAT),
      check: () => inOrder(check),
      end,
    })
    send(`retry: ${RETRY_MS}\n${message('hello', missed(c, principal))}`)
    // The connection was open before the hand-over. It closes with this answer, and the client reconnects to the successor.
    if (c.env.lifecycle.handedOver) end()
  }
  return new ReadableStream({ start, cancel: leave })
}

const BEAT = 'event: beat\ndata: .\n\n'
const BYE = 'event: bye\ndata: .\n\n'

const message = (event: string, { id, topics }: Change): string =>
  `id: ${id}\nevent: ${event}\ndata: ${topics.join(' ')}\n\n`

const isFor = (topic: LiveTopic, { grants }: Principal): boolean => {
  const need = NEEDS[topic]
  return need === null || holds(grants, need.permission, need.own ? 'own' : 'all')
}

const idFor = (principal: Principal, id: string): string => (seesOnlyOwnKeys(principal) ? OWN_LIVE_ID : id)

/** A value that changes with the user's keys and their requests; null: the user sees all keys. */
const ownKeysState = async (c: Ctx, principal: Principal): Promise<string | null> => {
  return seesOnlyOwnKeys(principal) ? await keysState(c.env.db, { ownerUserId: principal.id }) : null
}

/** The last message a browser saw, or the one of its page; without either, nothing was missed. */
const missed = (c: Ctx, principal: Principal): Change => {
  const { live } = c.env
  const seen = c.req.header('last-event-id') ?? c.req.query('since')
  // An id of users who see only their own keys is unknown, so they get every topic.
  const topics = seen === undefined ? [] : live.since(idFor(principal, seen))
  return { id: idFor(principal, live.lastId), topics: topics.filter((topic) => isFor(topic, principal)) }
}

/** `who` with their current permissions; null when the session ended or belongs to another user. */
const principalNow = async (c: Ctx, who: string): Promise<Principal | null> => {
  const resolution = await resolve(c)
  if (resolution.kind !== 'principal' || resolution.mustEnroll) return null
  return resolution.principal.id === who ? resolution.principal : null
}
