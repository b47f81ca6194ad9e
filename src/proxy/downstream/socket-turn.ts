/** One turn on a client socket, from its `response.create` frame to its terminal event or error frame. */
import type { Client } from '../../auth/client-key.ts'
import { AppError, openAiError } from '../../errors.ts'
import { getText } from '../../lib/json.ts'
import { choicesFor } from '../../model/sources/sources.ts'
import { MAX_PREWARM_BYTES } from '../exchange/prewarm.ts'
import { MAX_FRAME_BYTES } from '../exchange/transport.ts'
import { underFastModeRule } from '../ingress/key-policy.ts'
import { demandsCapability, mentionsCapability, requireSingle } from '../ingress/raw-body.ts'
import { type Continued, type Create, type Earlier, nativeBody, publicBody } from '../ingress/socket-create.ts'
import { listTextOf } from '../ingress/splice.ts'
import { conversationHash } from '../pool/affinity.ts'
import { unsupportedBySourceError } from '../sources/source-body.ts'
import { admit, orReject, requireOpen } from '../turn/admit.ts'
import { begin } from '../turn/begin.ts'
import type { Flow } from '../turn/flow.ts'
import { ClientGone, type Turn } from '../turn/turn.ts'
import { errorFrame, type FrameContract } from './frame-contract.ts'
import type { SocketSession } from './socket-session.ts'

const RESPONSES_PATH = '/codex/responses'

export class SocketTurn {
  readonly #session: SocketSession
  /** Null once the turn has begun: frames are large, and only attempts need them. */
  #create: Create | null
  readonly #turnAbort = new AbortController()
  #contract: FrameContract | null = null
  #flow: Flow | null = null
  #isInterrupted = false

  constructor(session: SocketSession, create: Create) {
    this.#session = session
    this.#create = create
  }

  get keepalive(): string | null {
    return this.#contract?.keepalive ?? null
  }

  /** The client cancels the turn: the upstream is cut off and the turn ends as incomplete. */
  interrupt(): void {
    this.#isInterrupted = true
    this.#turnAbort.abort(new ClientGone())
  }

  /** Serves the turn. Rejects only for internal errors. */
  async run(): Promise<void> {
    try {
      await this.#serve()
    } catch (err) {
      this.#create?.hold.release()
      this.#session.noteRejection(err)
      if (this.#session.gone.aborted) return
      await this.#session.send(this.#ending(err))?.catch(() => {}) // disconnected in the meantime
    }
  }

  async #serve(): Promise<void> {
    const { turn, contract, leaves } = await this.#admitted(this.#create!) // it runs once
    this.#create = null
    const { env } = this.#session.handshake
    const sent = { headers: false }
    const served = { env, turn, turnAbort: this.#turnAbort, left: this.#session.gone }
    const flow = await begin(served, sent)
    this.#flow = flow
    sent.headers = true
    try {
      for (let events = await flow.next(); events !== null; events = await flow.next()) {
        const wait = this.#session.send(contract.frames(events, flow.meter))
        if (wait !== null) await wait
      }
    } catch (err) {
      if (err instanceof ClientGone) flow.cancel()
      else flow.fail(AppError.from(err)) // an internal error must not keep the account's slot
      throw err
    }
    if (flow.meter.terminal === null) throw new ClientGone() // cancelled by the client
    this.#remember(turn, flow, leaves)
  }

  /** Repeats every check of the handshake. */
  async #admitted(create: Create): Promise<Admitted> {
    const { env, isNative, route, headers, contract } = this.#session.handshake
    const { frame, bytes } = create
    if (env.captures.isOn) create.hold.received = bytes
    const arrivedAt = env.clock.monotonic()
    requireOpen(env)
    const client = this.#session.client({ isAsking: mentionsCapability(frame) })
    if (demandsCapability(frame)) this.#session.isRestricted = true
    this.#requirePool(frame, client)
    this.#contract = contract(client, client.key?.enforcedModel ?? (getText(frame.model) || null))
    // no turn may use it now
    if (env.settings.current().upstreamStreamTransport === 'http') this.#session.upstream.drop()
    const arrival = { env, headers, client, requestId: env.random.id('req'), arrivedAt }
    const admission = {
      route,
      kind: frame.generate === false ? 'prewarm' : 'normal',
      isNative,
      path: RESPONSES_PATH,
      accept: 'text/event-stream',
      transport: 'websocket',
      session: this.#session.upstream,
      restricted: this.#session.isRestricted,
      body: { bytes, json: frame, hold: create.hold },
      signal: this.#turnAbort.signal,
    } as const
    const made = orReject(arrival, admission, 'request', () => this.#made(create, client, arrivedAt))
    const { body, chain, isInstructed } = made
    const turn = await admit(arrival, { ...admission, body, chain })
    const keepsInput = turn.kind === 'prewarm' && body.bytes.length <= MAX_PREWARM_BYTES
    return {
      turn,
      contract: this.#contract,
      leaves: { input: keepsInput ? (listTextOf(body, 'input') ?? NO_ITEMS) : null, isInstructed },
    }
  }

  /**
   * Model sources have no sockets. A client whose turn fails like this connects again; the handshake then tells it to use
   * HTTP. Throws `model_source_requires_http_transport`.
   */
  #requirePool(frame: Create['frame'], client: Client): void {
    const { env, headers } = this.#session.handshake
    const model = client.key?.enforcedModel ?? frame.model
    const wanted = { model, key: client.key, capability: 'responses', isStreamed: true } as const
    if (this.#session.isRestricted || choicesFor(env, wanted).length === 0) return
    if (env.pool.offers(getText(model)) && unsupportedBySourceError(frame) !== null) return
    const thread = conversationHash(headers, null, client.key?.id ?? null)
    if (thread !== null) env.proxyDeps.sourceThreads.note(thread, env.clock.monotonic())
    throw new AppError('model_source_requires_http_transport')
  }

  /** Throws what the body builders do, and `previous_response_not_found`. */
  #made(create: Create, { key }: Client, now: number): Continued {
    requireSingle(create.bytes, create.frame)
    const { handshake, earlier } = this.#session
    const { frame: json, ...rest } = create
    const asked = underFastModeRule({ ...rest, json }, key, handshake.env.settings.current())
    const { json: frame, ...body } = asked.body
    const made = (handshake.isNative ? nativeBody : publicBody)({ ...body, frame }, asked.key, earlier)
    const isTooLarge = made.body.bytes.length > MAX_FRAME_BYTES
    if (made.chain !== null && (isTooLarge || !this.#canContinue(now)))
      throw new AppError('previous_response_not_found', { param: 'previous_response_id' })
    return made
  }

  /** Whether the upstream connection is open and its account may serve this turn; a restriction may be new. */
  #canContinue(now: number): boolean {
    const { upstream, isRestricted, handshake } = this.#session
    const accountId = upstream.accountAt(now)
    if (accountId === null) return false
    return !isRestricted || (handshake.env.pool.get(accountId)?.securityWorkAuthorized ?? false)
  }

  /** Remembers the response. The input of a prewarm the upstream does not know is put before the next turn's. */
  #remember({ log }: Turn, { meter: { responseId: id } }: Flow, { input, isInstructed }: Admitted['leaves']): void {
    const isOurs = log.upstreamTransport === null
    this.#session.earlier = id === null ? null : { id, input: isOurs ? input : null, isInstructed }
  }

  /** Before the first event an error frame, which the client reads like an HTTP status; afterwards the terminal event. */
  #ending(err: unknown): string[] {
    const flow = this.#flow
    if (this.#isInterrupted) return [interruptedEvent(flow?.meter.responseId ?? null, flow?.meter.events ?? 0)]
    const error = AppError.from(err)
    if (flow && this.#contract) return this.#contract.failed(error, flow.meter)
    const { isNative, headers } = this.#session.handshake
    return [errorFrame(isNative ? errorForResend(error, headers) : error)]
  }
}

interface Admitted {
  turn: Turn
  contract: FrameContract
  /** `input` includes earlier prewarms; null for turns that are not prewarms, and when too large to keep. */
  leaves: Omit<Earlier, 'id'>
}

const NO_ITEMS = { items: [], text: '' }

const interruptedEvent = (id: string | null, sequenceNumber: number): string =>
  JSON.stringify({
    type: 'response.incomplete',
    sequence_number: sequenceNumber,
    response: {
      ...(id !== null && { id }),
      object: 'response',
      status: 'incomplete',
      incomplete_details: { reason: 'interrupted' },
      output: [],
    },
  })

/**
 * Minor version: 0.118 to 0.140 show `previous_response_not_found` to the user and end the turn; 0.150 and later handle
 * it.
 */
const FIRST_HANDLING_MINOR = 150

/**
 * The error itself or, for an older native client, the code on which all versions resend (seen with 0.118, 0.140,
 * 0.169, and Zed's adapter, which is 0.137).
 */
function errorForResend(err: AppError, headers: Headers): AppError {
  const { code, type } = openAiError(err)
  if (code !== 'previous_response_not_found' || !isOlderCodex(headers)) return err
  return new AppError(err.code, { ...err.extra, upstream: { code: 'websocket_connection_limit_reached', type } })
}

/** By `codex_cli_rs/0.137.0 (…)`, whatever the name; 0.118 sends only its `originator`. */
function isOlderCodex(headers: Headers): boolean {
  const agent = headers.get('user-agent')
  if (agent === null) return headers.get('originator')?.startsWith('codex_') ?? false
  const minor = /^[^/ ]+\/0\.(\d+)\.\d+\S* \(/.exec(agent)?.[1]
  return minor !== undefined && Number(minor) < FIRST_HANDLING_MINOR
}
