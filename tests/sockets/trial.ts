/** Shared by fuzz and chaos: the server, a check of what its clients get, and of its totals. */
import { expect } from 'bun:test'
import { readdirSync } from 'node:fs'
import { sql } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import type { AccountState, AccountStatus } from '../../src/model/accounts/account-state.ts'
import type { LiveLimit } from '../../src/model/keys/reservations.ts'
import type { LiveOptions } from '../support/live.ts'
import { SEED } from '../support/property.ts'
import { endsTurn, type SocketEvent } from '../support/socket-client.ts'
import { until } from '../support/until.ts'
import { type SocketWorld, startSocketWorld } from './ground.ts'

export const ACCOUNTS = 6

/** Limits no run reaches: what matters is that reservations are released and use is counted. */
const LIMITS = (['requests', 'total_tokens', 'cost_usd'] as const).map((limitType) => ({
  limitType,
  limitWindow: 'monthly' as const,
  maxValue: 1_000_000_000_000,
  modelFilter: '',
}))

export interface Trial {
  service: SocketWorld
  /** For the only key, which has limits of several kinds. */
  authorization: string
}

/** Time limits are short, so that an upstream that falls silent costs a second and not minutes. */
export const startTrial = async ({ settings, ...options }: LiveOptions = {}): Promise<Trial> => {
  const service = await startSocketWorld({
    accounts: ACCOUNTS,
    settings: {
      proxyAccountStreamLimit: 0,
      firstEventTimeoutSeconds: 1,
      commitTimeoutSeconds: 3,
      compactTimeoutSeconds: 3,
      streamIdleTimeoutSeconds: 1,
      ...settings,
    },
    ...options,
  })
  return { service, authorization: `Bearer ${(await service.key({ limits: LIMITS })).key}` }
}

/** The size of a run; `bun run soak` uses more. */
export const getSize = (variable: string, usual: number): number => {
  const wanted = Number.parseInt(process.env[variable] ?? '', 10)
  return Number.isNaN(wanted) ? usual : wanted
}

/** Prints how to repeat the run when it fails. Plans repeat exactly; the timing on the wire does not. */
export const withSeedInError = async (run: () => Promise<void>): Promise<void> => {
  try {
    await run()
  } catch (err) {
    console.error(`Repeat with SEED=${SEED}`)
    throw err
  }
}

/** Ends every block and error state, as a long wait would. Throws if an account needs sign-in without cause. */
export const clearAccountBlocks = ({ bindings, members, upstream }: SocketWorld): void => {
  const at = Date.now()
  for (const { id, sim } of members) {
    requireCause(bindings.pool.get(id)?.state, upstream, sim.chatgptAccountId)
    bindings.pool.apply(id, { kind: 'reauthenticated', at })
    bindings.pool.apply(id, { kind: 'reactivate', at }) // a sign-in ends no pause
    bindings.pool.health(id, { kind: 'success', at })
    const account = bindings.pool.get(id)
    if (account) account.httpUntil = 0
  }
}

/**
 * Two faults in a row may reject an account's token and its replacement: only then is a sign-in needed. A single token
 * that was rejected twice was merely still in use after its refresh.
 */
const requireCause = (state: AccountState | undefined, { requests, handshakes }: Upstream, accountId: string): void => {
  if (!state || !SIGNED_OUT.has(state.status)) return
  const until = state.since ?? 0
  const refused = [...requests, ...handshakes]
    .filter(({ account, status }) => account === accountId && status === 401)
    .filter(({ at }) => at >= until - LONGEST_TURN_MS && at <= until)
  const tokens = new Set(refused.map(({ headers }) => headers.authorization))
  if (tokens.size < 2)
    throw new Error(`${accountId} needs a sign-in after ${tokens.size} refused token: ${state.evidence}`)
}

type Upstream = SocketWorld['upstream']
const SIGNED_OUT: ReadonlySet<AccountStatus> = new Set(['reauth_required', 'deactivated'])
/** Before its commit point, and something for a busy machine. */
const LONGEST_TURN_MS = 30_000

/** Follows the events of one socket: turns may not overlap, and each ends once. */
export interface TurnChecker {
  see(event: SocketEvent): void
  /** Terminal events and error frames so far. */
  readonly ends: number
  /** Id of the last response that was completed. */
  readonly lastId: string | null
}

/** `see` throws at the first event that should not have come. */
export const createTurnChecker = (): TurnChecker => {
  let ends = 0
  let lastId: string | null = null
  let running: unknown = null
  return {
    see(event) {
      const id = getResponseId(event)
      if (event.type === 'response.created') {
        if (running !== null) throw new Error(`response ${id} began inside of ${running}`)
        running = id
      } else if (endsTurn(event)) {
        ends++
        if (event.type === 'error') requireRefusal(event)
        else if (running !== null) {
          if (id !== running) throw new Error(`${running} was ended by ${show(event)}`)
          running = null
        } else if (event.type === 'response.completed') throw new Error(`${id} ended without having begun`)
        if (event.type === 'response.completed') lastId = String(id)
      } else if (event.type.startsWith('codex.')) return
      else if (running === null || !event.type.startsWith('response.'))
        throw new Error(`this belongs to no turn: ${show(event)}`)
    },
    get ends() {
      return ends
    },
    get lastId() {
      return lastId
    },
  }
}

const getResponseId = ({ response }: SocketEvent): unknown => (response as { id?: unknown } | undefined)?.id // as: checked, not trusted

const requireRefusal = (event: SocketEvent): void => {
  const { status, error } = event as { status?: unknown; error?: { code?: unknown } } & SocketEvent // as above
  if (typeof status !== 'number' || status < 400 || typeof error?.code !== 'string')
    throw new Error(`an error frame without status or code: ${show(event)}`)
  if (error.code === 'internal_error') throw new Error(`a fault of our own: ${show(event)}`)
}

const show = (event: SocketEvent): string => JSON.stringify(event).slice(0, 400)

/** Waits for the last turns to end, then demands that nothing is held, open or counted wrong. Clients must have left. */
export const expectBalance = async ({ service }: Trial): Promise<void> => {
  const { bindings, upstream } = service
  const left = () => ({
    sockets: bindings.sockets.size,
    turns: bindings.turns.size,
    inFlight: bindings.pool.all().reduce((sum, { inFlight }) => sum + inFlight, 0),
    heldBytes: bindings.bodies.heldBytes,
    openStreams: upstream.openStreams,
    openSockets: upstream.openSockets,
  })
  const nothing = { sockets: 0, turns: 0, inFlight: 0, heldBytes: 0, openStreams: 0, openSockets: 0 }
  await until(() => Bun.deepEquals(left(), nothing), 'nothing left').catch(() => {}) // the remaining items say more
  expect(left()).toEqual(nothing)
  expect(upstream.oddities).toEqual([])
  expect(service.lines.filter((line) => /^\S+ ERROR /.test(line))).toEqual([])
  service.lines.length = 0
  await bindings.ledger.flush()
  expect(bindings.ledger.pending).toBe(0)
  await expectSums(bindings.db)
  for (const { type, settled, reserved, stored } of await storedLimits(service))
    expect({ type, settled, reserved }).toEqual({ type, settled: stored, reserved: 0 })
}

const storedLimits = async ({ bindings }: SocketWorld): Promise<(LiveLimit & { stored: number })[]> =>
  (await bindings.db.all<{ hash: string; id: string; stored: number }>(sql.raw(STORED_LIMITS))).flatMap(
    ({ hash, id, stored }) =>
      (bindings.keys.byHash(hash)?.limits ?? [])
        .filter((limit) => limit.id === id)
        .map((limit) => ({ ...limit, stored })),
  )

const STORED_LIMITS = `SELECT key_hash AS hash, l.id AS id, current_value AS stored
  FROM api_key_limits l JOIN api_keys k ON k.id = l.key_id`

/** Counters of keys, limits and hours against the sums of the rows. */
const expectSums = async (db: Db): Promise<void> => {
  const one = (query: string) => db.get<Record<string, number>>(sql.raw(query))
  const total = (column: string) => `coalesce(sum(${column}), 0)`
  const sums = (count: string) =>
    `SELECT ${count} AS requests, ${total('input_tokens')} AS input, ${total('output_tokens')} AS output, ${total('cost_micros')} AS cost`
  const ofRows = `${sums('count(*)')} FROM requests`
  expect(await one(`${sums(total('request_count'))} FROM api_keys`)).toEqual(
    await one(`${ofRows} WHERE key_id IS NOT NULL`),
  )
  expect(await one(`${sums(total('requests'))} FROM request_hours`)).toEqual(await one(ofRows))
  expect(await one('SELECT count(*) AS n FROM attempts WHERE account_id IS NOT NULL')).toEqual(
    await one(`SELECT ${total('attempts')} AS n FROM requests`),
  )
  for (const [type, used] of Object.entries(USED_BY_LIMIT))
    expect([
      type,
      await one(`SELECT ${total('current_value')} AS n FROM api_key_limits WHERE limit_type = '${type}'`),
    ]).toEqual([
      type,
      await one(`SELECT ${total(used)} AS n FROM requests WHERE key_id IS NOT NULL AND kind <> 'prewarm'`),
    ])
}

/** A prewarm uses nothing up. */
const USED_BY_LIMIT = {
  requests: 'CASE WHEN input_tokens IS NOT NULL THEN 1 END',
  total_tokens: 'input_tokens + output_tokens',
  cost_usd: 'cost_micros',
}

/** Open descriptors of this process; null if they cannot be counted. */
export const openDescriptors = (): number | null => {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return null
  }
}

/** Both ends of the connections that `fetch` keeps for later; a leak of thousands of sockets is far above. */
export const KEPT_DESCRIPTORS = 64
