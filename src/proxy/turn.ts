/** Everything one model request is: what was asked, by whom, within which limits, and what has happened to it so far. */
import type { Client } from '../auth/client-key.ts'
import type { Bindings } from '../bindings.ts'
import type { JsonObject } from '../lib/json.ts'
import type { StopSignal } from '../lib/stopper.ts'
import type { Reservation } from '../model/reservations.ts'
import type { Settings } from '../settings/schema.ts'
import type { BodyHold } from './raw-body.ts'
import type { Considered } from './select.ts'
import type { UpstreamSession } from './upstream-session.ts'

export type TurnKind = 'normal' | 'compaction' | 'prewarm'
export type Transport = 'http' | 'websocket'
/** `request`: what was asked could not be read or served as it is; `auth`: the key does not allow it; `upstream`: the upstream answered with an error. */
export type Phase = 'request' | 'auth' | 'select' | 'connect' | 'first_event' | 'upstream' | 'stream' | 'finish'

/** A request, as it came and as it goes to the upstream. `bytes` is what the client wrote wherever that was possible. */
export interface TurnBody {
  bytes: Uint8Array<ArrayBuffer>
  /** Parsed from `bytes`, for reading only. */
  json: JsonObject
  hold: BodyHold
}

/** What a turn takes from the request, or the socket, that it came in on. */
export interface Arrival {
  env: Bindings
  headers: Headers
  client: Client
  requestId: string
  /** `clock.monotonic()` */
  arrivedAt: number
}

export interface AttemptRecord {
  n: number
  accountId: string | null
  /** ms since epoch. */
  startedAt: number
  durationMs: number
  outcome: 'ok' | 'failed' | 'cancelled'
  upstreamStatus: number | null
  code: string | null
  message: string | null
  considered: readonly Considered[]
}

export interface Turn {
  /** Of the log row; `requestId` is what the client sees and may have chosen. */
  readonly id: string
  readonly requestId: string
  readonly route: string
  /** It came on a native route, whose client handles statuses differently from SDKs (client protocol §10). */
  readonly isNative: boolean
  readonly kind: TurnKind
  /** How the client came. A body that came on a socket is a frame, and is written as one. */
  readonly transport: Transport
  /** The upstream socket of the client's own, kept between turns; null for a client that came over HTTP. */
  readonly session: UpstreamSession | null
  /** The earlier response the body continues; only the upstream connection that produced it knows it. */
  readonly chain: string | null
  readonly client: Client
  readonly userAgent: string | null
  readonly model: string | null
  readonly reasoningEffort: string | null
  readonly serviceTier: string | null
  /** Path under the upstream base URL, and what is accepted there. */
  readonly path: string
  readonly accept: string
  /** Deltas leave as they came, so they need not be told apart. */
  readonly passesDeltas: boolean
  /** Tag of the account that issued the client's turn state (`upstream/headers.ts`). */
  readonly turnStateOwner: string | null
  readonly conversation: string | null
  /** The conversation's hash by how it began, where it has no name; under way in `Openings` until the turn is settled. */
  readonly opening: string | null
  /** The same hash where nothing was answered yet: a second request, if there is one, goes to the account of this one. */
  readonly firstOf: string | null
  /** The history is inside a `compaction` item only its account can read: the turn never moves. */
  readonly isAnchored: boolean
  readonly hasCiphertext: boolean
  readonly restricted: boolean
  readonly settings: Readonly<Settings>
  readonly reservation: Reservation
  readonly estimate: { inputTokens: number }
  /** Aborts when the client leaves or the service drains. */
  readonly signal: StopSignal
  /** ms since epoch and on the monotonic clock. */
  readonly startedAt: number
  readonly arrivedAt: number
  readonly log: TurnLog
  /** The client's headers that may leave; none once the commit point is passed. */
  headers: Readonly<Record<string, string>>
  /** Null once the commit point is passed: the request is not needed again, and a stream may last for hours. */
  body: TurnBody | null
}

/** What happened so far, filled in by the stages as the turn passes through them. */
interface TurnLog {
  phase: Phase
  attempts: AttemptRecord[]
  accountId: string | null
  /** Of the attempt that was made last; null before the first. */
  upstreamTransport: Transport | null
  /** Whether that attempt came so far that the upstream may have begun to work. */
  isSent: boolean
  moved: boolean
  /** Whether the account that was leased last goes on with paid credits. */
  paidCredits: boolean
  /** The attempt that was made last went without any reasoning, which the account could not read. */
  isShortened: boolean
  /** Milliseconds from arrival, three decimals. */
  admitMs: number | null
  selectMs: number | null
  connectMs: number | null
  firstEventMs: number | null
}

export const newTurnLog = (): TurnLog => ({
  phase: 'select',
  attempts: [],
  accountId: null,
  upstreamTransport: null,
  isSent: false,
  moved: false,
  paidCredits: false,
  isShortened: false,
  admitMs: null,
  selectMs: null,
  connectMs: null,
  firstEventMs: null,
})

/** Milliseconds between two monotonic readings, three decimals. */
export const elapsedMs = (from: number, to: number): number => Math.round((to - from) * 1000) / 1000

export const releaseRequest = (turn: Turn): void => {
  turn.body?.hold.release()
  turn.body = null
  turn.headers = NO_HEADERS
}

const NO_HEADERS: Turn['headers'] = Object.freeze({})

/** Why a turn was aborted; the reason of its signal. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone'
}
