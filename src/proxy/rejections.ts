/** Gathers rejected clients in memory, so that a flood of them costs one row a minute, and has the ledger write them. */
import type { Database } from 'bun:sqlite'
import { REJECTION_REASONS, type rejectedClients } from '../../db/schema/rejections.ts'
import type { Clock } from '../lib/clock.ts'
import { HOUR_MS, MINUTE_MS } from '../lib/durations.ts'
import type { Log } from '../lib/log.ts'
import type { Rejection, RejectionReason } from '../model/rejections.ts'

/** A rejection with what is known of the request. */
export interface RejectedRequest extends Rejection {
  /** Address of the client; null: unknown. */
  ip: string | null
  /** The pattern of the route, or the path of a socket. */
  route: string
  userAgent: string | null
}

type Row = Required<Omit<typeof rejectedClients.$inferInsert, 'id'>>

/** Rows an hour. One for each reason is left for the clients that come when the others are used up. */
const MOST_ROWS = 1000 - REJECTION_REASONS.length
/** Stands for these clients. */
const FURTHER = '*'
const MAX_USER_AGENT_CHARS = 200

interface RejectionsDeps {
  /** Its schema must be in place. */
  sqlite: Database
  clock: Pick<Clock, 'now'>
  log: Log
}

export class Rejections {
  readonly #deps: RejectionsDeps
  readonly #add
  /** Rejections by reason since the start. */
  readonly counts = Object.fromEntries(REJECTION_REASONS.map((reason) => [reason, 0])) as Record<
    RejectionReason,
    number
  > // as: every reason is there
  #pending = new Map<string, Row>()
  #hour: number
  /** The rows of this hour, by place, those of clients that are counted together left out. */
  #places: Set<string>
  #minute = 0
  /** Clients the server log has named in this minute. */
  #named = new Set<string>()

  constructor(deps: RejectionsDeps) {
    this.#deps = deps
    this.#add = deps.sqlite.prepare(ADD)
    this.#hour = hourOf(deps.clock.now())
    const rows = deps.sqlite.prepare<Place, [number, string]>(PLACES).all(this.#hour, FURTHER)
    this.#places = new Set(rows.map(nameOf))
  }

  /** Rows that are not written yet. */
  get pending(): number {
    return this.#pending.size
  }

  /** Touches memory only and never throws. */
  note(request: RejectedRequest): void {
    this.counts[request.reason]++
    const now = this.#deps.clock.now()
    const place = this.#placeOf(request, now)
    this.#warn(place.client, request, now)
    const name = nameOf(place)
    const count = (this.#pending.get(name)?.count ?? 0) + 1
    const { reason, keyStart = null, keyId = null, model = null, route, userAgent } = request
    const facts = { keyStart, keyId, model, route, userAgent: userAgent?.slice(0, MAX_USER_AGENT_CHARS) ?? null }
    this.#pending.set(name, { ...place, reason, count, lastAt: now, ...facts })
  }

  /** Must run inside a transaction; `written` forgets them once it is committed. */
  write(): void {
    for (const row of this.#pending.values()) this.#add.run({ ...row })
  }

  written(): void {
    this.#pending = new Map()
  }

  #placeOf({ ip, reason }: RejectedRequest, now: number): Place {
    const hour = hourOf(now)
    if (hour !== this.#hour) {
      this.#hour = hour
      this.#places = new Set()
    }
    const own = { minute: minuteOf(now), client: ip ?? '', reason }
    const name = nameOf(own)
    if (!this.#places.has(name) && this.#places.size >= MOST_ROWS) return { minute: hour, client: FURTHER, reason }
    this.#places.add(name)
    return own
  }

  /** Once a minute and client. */
  #warn(client: string, { reason, keyStart, route }: RejectedRequest, now: number): void {
    const minute = minuteOf(now)
    if (minute !== this.#minute) {
      this.#minute = minute
      this.#named = new Set()
    }
    if (this.#named.has(client)) return
    this.#named.add(client)
    this.#deps.log.warn('a client was rejected', { client, reason, key: keyStart ? `${keyStart}…` : undefined, route })
  }
}

type Place = Pick<Row, 'minute' | 'client' | 'reason'>

const nameOf = ({ minute, client, reason }: Place): string => `${minute} ${reason} ${client}`

const hourOf = (now: number): number => now - (now % HOUR_MS)
const minuteOf = (now: number): number => now - (now % MINUTE_MS)

const PLACES = 'SELECT minute, client, reason FROM rejected_clients WHERE minute >= ? AND client <> ?'

const ADD = `
INSERT INTO rejected_clients (minute, client, reason, count, last_at, key_start, key_id, model, route, user_agent)
VALUES ($minute, $client, $reason, $count, $lastAt, $keyStart, $keyId, $model, $route, $userAgent)
ON CONFLICT DO UPDATE SET
  count = count + excluded.count,
  last_at = excluded.last_at,
  key_start = excluded.key_start,
  key_id = excluded.key_id,
  model = excluded.model,
  route = excluded.route,
  user_agent = excluded.user_agent`
