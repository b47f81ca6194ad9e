/** Collects rejected clients in memory, one row per client, reason and minute, for the ledger to write. */
import { and, gte, ne } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { REJECTION_REASONS, rejectedClients } from '../../../db/schema/rejections.ts'
import { type Insertion, inKeyOrder, insertInto } from '../../../db/statements.ts'
import type { Rejection, RejectionReason } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import type { Log } from '../../lib/log.ts'

/** A rejection with details of its request. */
export interface RejectedRequest extends Rejection {
  /** Address of the client; null when unknown. */
  ip: string | null
  /** The route pattern, or the path of a socket. */
  route: string
  userAgent: string | null
}

export type RejectedRow = Required<Omit<typeof rejectedClients.$inferInsert, 'id'>>

/** Rows per hour. One per reason is reserved for clients beyond the limit. */
const MAX_ROWS = 1000 - REJECTION_REASONS.length
/** Client name for the clients beyond the limit. */
const FURTHER = '*'
const MAX_USER_AGENT_CHARS = 200

interface RejectionsDeps {
  db: Db
  clock: Pick<Clock, 'now'>
  log: Log
}

export class Rejections {
  readonly #deps: RejectionsDeps
  /** Rejections by reason, since start. */
  readonly counts = Object.fromEntries(REJECTION_REASONS.map((reason) => [reason, 0])) as Record<
    RejectionReason,
    number
  > // as: contains every reason
  #pending = new Map<string, RejectedRow>()
  #hour: number
  /** This hour's rows, without those that count several clients. */
  #places: Set<string>
  #minute = 0
  /** Clients already logged in this minute. */
  #named = new Set<string>()

  private constructor(deps: RejectionsDeps, hour: number, places: readonly Place[]) {
    this.#deps = deps
    this.#hour = hour
    this.#places = new Set(places.map(getName))
  }

  static async open(deps: RejectionsDeps): Promise<Rejections> {
    const hour = getHour(deps.clock.now())
    const { minute, client, reason } = rejectedClients
    const places = await deps.db
      .select({ minute, client, reason })
      .from(rejectedClients)
      .where(and(gte(minute, hour), ne(client, FURTHER)))
      .all()
    return new Rejections(deps, hour, places)
  }

  /** Rows not yet written. */
  get pending(): number {
    return this.#pending.size
  }

  /** Only touches memory and never throws. */
  note(request: RejectedRequest): void {
    this.counts[request.reason]++
    const now = this.#deps.clock.now()
    const place = this.#getPlace(request, now)
    this.#warn(place.client, request, now)
    const name = getName(place)
    const count = (this.#pending.get(name)?.count ?? 0) + 1
    const { reason, keyStart = null, keyId = null, model = null, route, userAgent } = request
    const facts = { keyStart, keyId, model, route, userAgent: userAgent?.slice(0, MAX_USER_AGENT_CHARS) ?? null }
    this.#pending.set(name, { ...place, reason, count, lastAt: now, ...facts })
  }

  /** The rows to write, which are no longer pending. */
  take(): RejectedRow[] {
    const rows = [...this.#pending.values()]
    this.#pending = new Map()
    return rows
  }

  /** They could not be written. */
  putBack(rows: readonly RejectedRow[]): void {
    const since = this.#pending
    this.#pending = new Map(rows.map((row) => [getName(row), row]))
    for (const [name, row] of since)
      this.#pending.set(name, { ...row, count: row.count + (this.#pending.get(name)?.count ?? 0) })
  }

  #getPlace({ ip, reason }: RejectedRequest, now: number): Place {
    const hour = getHour(now)
    if (hour !== this.#hour) {
      this.#hour = hour
      this.#places = new Set()
    }
    const own = { minute: getMinute(now), client: ip ?? '', reason }
    const name = getName(own)
    if (!this.#places.has(name) && this.#places.size >= MAX_ROWS) return { minute: hour, client: FURTHER, reason }
    this.#places.add(name)
    return own
  }

  /** Once per minute and client. */
  #warn(client: string, { reason, keyStart, route }: RejectedRequest, now: number): void {
    const minute = getMinute(now)
    if (minute !== this.#minute) {
      this.#minute = minute
      this.#named = new Set()
    }
    if (this.#named.has(client)) return
    this.#named.add(client)
    this.#deps.log.warn('a client was rejected', { client, reason, key: keyStart ? `${keyStart}…` : undefined, route })
  }
}

type Place = Pick<RejectedRow, 'minute' | 'client' | 'reason'>

const getName = ({ minute, client, reason }: Place): string => `${minute} ${reason} ${client}`

const getHour = (now: number): number => now - (now % HOUR_MS)
const getMinute = (now: number): number => now - (now % MINUTE_MS)

const intoRejected = insertInto(rejectedClients, {
  except: 'id',
  onConflict: `ON CONFLICT (minute, client, reason) DO UPDATE SET
  count = rejected_clients.count + excluded.count,
  last_at = excluded.last_at,
  key_start = excluded.key_start,
  key_id = excluded.key_id,
  model = excluded.model,
  route = excluded.route,
  user_agent = excluded.user_agent`,
})

export const addRejected = (rows: readonly RejectedRow[]): Insertion =>
  intoRejected(inKeyOrder(new Map(rows.map((row) => [getName(row), row]))))
