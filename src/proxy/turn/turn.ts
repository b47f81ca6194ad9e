/** A model request: its input, client and limits, and what has happened to it so far. */
import type { Client } from '../../auth/client-key.ts'
import type { Bindings } from '../../boot/bindings.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { CaptureRecorder } from '../../model/captures/recorder.ts'
import type { EgressReason } from '../../model/egress/route.ts'
import type { Reservation } from '../../model/keys/reservations.ts'
import type { Considered } from '../../model/log/skip-reasons.ts'
import type { SourceModel } from '../../model/sources/sources.ts'
import type { Settings } from '../../settings/schema.ts'
import type { UpstreamSession } from '../exchange/upstream-session.ts'
import type { BodyHold } from '../ingress/raw-body.ts'
import type { AffinityRow } from '../pool/affinity.ts'
import type { Surface } from '../pool/selection-needs.ts'
import type { RelayPlan } from '../relay/plan.ts'
import type { Recording } from '../responses-store/stored-response.ts'

export type TurnKind = 'normal' | 'compaction' | 'prewarm' | RelayKind
/** Kinds of relayed requests. */
export type RelayKind = 'image' | 'audio' | 'file' | 'control' | 'live' | 'embedding' | 'warmup'
export type Transport = 'http' | 'websocket'
/** `request`: unreadable or invalid; `auth`: not allowed by the key; `upstream`: the upstream answered with an error. */
export type Phase = 'request' | 'auth' | 'select' | 'connect' | 'first_event' | 'upstream' | 'stream' | 'finish'

/** A request body. `bytes` keeps the client's own text where possible. */
export interface TurnBody {
  bytes: Uint8Array<ArrayBuffer>
  /** Parsed from `bytes`; read-only. */
  json: JsonObject
  hold: BodyHold
}

/** What a turn takes from its request or socket. */
export interface Arrival {
  env: Bindings
  headers: Headers
  client: Client
  requestId: string
  /** `clock.monotonic()` */
  arrivedAt: number
}

/** The model source that serves a turn, and what settling the turn needs of it. */
interface SourceUse {
  readonly id: string
  readonly name: string
  /** With its prices. */
  readonly model: SourceModel
  /** The pool is at its usage limit, so this source serves the turn in its place. */
  readonly isOverflow: boolean
  /** For the start of the answer, and for each silence in a stream. */
  readonly timeoutMs: number
  /** The key has limits that cannot be kept without the usage. */
  readonly demandsUsage: boolean
  /** Called once with what the turn cost; null where no budget applies. */
  readonly charge: ((costMicros: number) => void) | null
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
  /** ID of the log row. `requestId` is shown to the client, which may have chosen it. */
  readonly id: string
  readonly requestId: string
  readonly route: string
  /** From a native route, whose client handles statuses differently from SDKs (Codex CLI 0.169). */
  readonly isNative: boolean
  readonly kind: TurnKind
  readonly surface: Surface
  /** How it is relayed; null for a model turn. */
  readonly relay: RelayPlan | null
  /** The client's transport. A body that arrived on a socket is a frame. */
  readonly transport: Transport
  /** The upstream socket of the client's socket, kept between turns; null over HTTP. */
  readonly session: UpstreamSession | null
  /** The earlier response the body continues, known only to the upstream connection that produced it. */
  readonly chain: string | null
  readonly client: Client
  readonly userAgent: string | null
  readonly model: string | null
  readonly reasoningEffort: string | null
  readonly serviceTier: string | null
  /** Path under the upstream base URL, and the `accept` header for it. */
  readonly path: string
  readonly accept: string
  /** Deltas are passed on unchanged, so that the scanner may join them. */
  readonly passesDeltas: boolean
  /** Tag of the account that issued the client's turn state (`upstream/headers.ts`). */
  readonly turnStateOwner: string | null
  readonly conversation: string | null
  /** Hash of how an unnamed conversation begins; counted as running in `Openings` until settled. */
  readonly opening: string | null
  /** The same hash when nothing has been answered yet: a second request then uses the account of this one. */
  readonly getFirst: string | null
  /** The history is inside a `compaction` item that only its account can read, so the turn never moves. */
  readonly isAnchored: boolean
  readonly hasCiphertext: boolean
  /** The account that has the uploaded files the input names; no other can serve the turn. */
  readonly fileOwner: string | null
  readonly restricted: boolean
  readonly settings: Readonly<Settings>
  readonly reservation: Reservation
  readonly estimate: { inputTokens: number }
  /** Aborts when the client disconnects or Sluice drains. */
  readonly signal: AbortSignal
  /** ms since epoch and on the monotonic clock. */
  readonly startedAt: number
  readonly arrivedAt: number
  readonly log: TurnLog
  /** The client's headers that are passed on; empty after the commit point. */
  headers: Readonly<Record<string, string>>
  /** Null after the commit point: a stream may last for hours and does not need the request. */
  body: TurnBody | null
  /** What is stored of it when it is answered; null for nothing. */
  recording: Recording | null
  /** Null: no capture wants it. */
  readonly capture: CaptureRecorder | null
}

/** What has happened so far, filled in by each stage. */
interface TurnLog {
  phase: Phase
  attempts: AttemptRecord[]
  accountId: string | null
  /** The model source that serves the turn in place of an account. */
  source: SourceUse | null
  /** Transport of the last attempt; null before the first. */
  upstreamTransport: Transport | null
  /** Whether the last attempt got far enough for the upstream to have begun work. */
  isSent: boolean
  moved: boolean
  /** The account that it left could have served the request, and the move costs more than staying. */
  moveAvoidable: boolean
  /** How many tokens are cached on the account that it left. */
  cachedTokens: number
  /** Whether the last leased account uses paid credits. */
  paidCredits: boolean
  /** Whether the key's owner had used up their share of the pool. */
  borrowed: boolean
  /** The last attempt was sent without some reasoning, because the account could not read it. */
  isShortened: boolean
  /** Why the last selection or attempt had no route. */
  egressReason: EgressReason | null
  /** Rows to be written for files that were created or used. */
  owned: AffinityRow[]
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
  source: null,
  upstreamTransport: null,
  isSent: false,
  moved: false,
  moveAvoidable: false,
  cachedTokens: 0,
  paidCredits: false,
  borrowed: false,
  isShortened: false,
  egressReason: null,
  owned: [],
  admitMs: null,
  selectMs: null,
  connectMs: null,
  firstEventMs: null,
})

/** Milliseconds between two monotonic readings, three decimals. */
export const elapsedMs = (from: number, to: number): number => Math.round((to - from) * 1000) / 1000

export const releaseRequest = (turn: Turn): void => {
  turn.capture?.releaseRequest()
  turn.body?.hold.release()
  turn.body = null
  turn.headers = NO_HEADERS
}

const NO_HEADERS: Turn['headers'] = Object.freeze({})

/** The abort reason when the client disconnects. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone'
}
