/**
 * One open socket of the stand-in upstream: reads frames, answers one `response.create` at a time, keeps the record.
 */
import type { ServerWebSocket } from 'bun'
import type { Account } from './accounts.ts'
import { Conversation } from './conversation.ts'
import { openFrame } from './events.ts'
import type { Fault } from './faults.ts'
import { judgeCreate } from './judge.ts'
import type { ReceivedHandshake, ReceivedRequest } from './ledger.ts'
import { planStream } from './plan.ts'
import { getRouteName, noteLiteMarker } from './received.ts'
import { apiError, ConnectionReset, detail, Refusal } from './refusal.ts'
import { type Answer, answers, defaultAnswer, isJson, type Json, type Turn } from './script.ts'
import { getFrames, type Outgoing } from './socket-frames.ts'
import { rateHeaders } from './usage.ts'
import { applyEarlyFault, type World } from './world.ts'

export type Socket = ServerWebSocket<SocketSession>

/** What came of playing an answer: to its planned end, the peer left, or it was broken on purpose. */
type End = 'finished' | 'aborted' | 'severed'

const NOTICES = new Set(['response.interrupt', 'response.processed'])
/** A prewarm has no output and costs nothing. */
const PREWARM = answers.items([], { usage: { inputTokens: 0, outputTokens: 0 } })

export class SocketSession {
  readonly #world: World
  readonly #account: Account
  readonly #handshake: ReceivedHandshake
  /** The fault of the handshake; its part for an open connection is `stopReading`. */
  readonly #fault: Fault | null
  readonly #conversation = new Conversation()
  readonly #gone = new AbortController()
  #socket: Socket | null = null
  #forget = () => {}
  #answering: ReceivedRequest | null = null
  #drained: PromiseWithResolvers<void> | null = null
  #isEndedHere = false

  constructor(world: World, account: Account, handshake: ReceivedHandshake, fault: Fault | null) {
    this.#world = world
    this.#account = account
    this.#handshake = handshake
    this.#fault = fault
  }

  opened(socket: Socket): void {
    this.#socket = socket
    this.#forget = this.#world.ledger.openSocket()
    this.#stall(this.#fault)
  }

  drained(): void {
    this.#drained?.resolve()
    this.#drained = null
  }

  closed(code: number, reason: string): void {
    this.#handshake.closed = { code, reason }
    this.#forget()
    this.#gone.abort()
    this.drained()
  }

  /** Ends the connection, also one that does not read. */
  close(code: number, reason: string): void {
    this.#isEndedHere = true
    this.#socket?.close(code, reason)
  }

  /** Takes in one frame and resolves when it has been dealt with. */
  async receive(message: string | Buffer): Promise<void> {
    const frame = parse(message)
    if (frame === null || (frame.type !== 'response.create' && !NOTICES.has(String(frame.type)))) {
      const what = typeof message !== 'string' ? 'a binary frame' : frame ? `the type ${frame.type}` : 'no JSON object'
      this.#world.ledger.odd(`${getRouteName(this.#handshake)}: ${what} came on the socket`)
      this.#send(apiError(400, 'invalid_frame', `The frame is not understood: ${what}.`))
    } else if (frame.type === 'response.create') await this.#create(this.#record(String(message), frame), frame)
  }

  #record(bodyText: string, body: Json): ReceivedRequest {
    const { path, account, headers, connection } = this.#handshake
    const kept = {
      path,
      account,
      headers,
      connection,
      bodyText,
      body,
      query: {},
      search: '',
      bytes: new Uint8Array(),
      at: this.#world.now(),
    }
    const received = { ...kept, method: 'WS', status: null, eventsSent: 0, aborted: false, finished: false }
    this.#world.ledger.receive(received)
    return received
  }

  async #create(received: ReceivedRequest, body: Json): Promise<void> {
    if (this.#answering) {
      this.#world.ledger.odd(`${getRouteName(received)}: a response was asked for while another one was under way`)
      return this.#refuse(apiError(400, 'response_in_progress', 'Another response is in progress.'), received)
    }
    this.#answering = received
    noteLiteMarker(received, this.#world.ledger)
    let fault: Fault | null = null
    try {
      const turn = this.#judge(received, body)
      fault = this.#account.takeFault('create') ?? this.#account.takeFault('responses')
      this.#stall(fault)
      await applyEarlyFault(fault, this.#world, { signal: this.#gone.signal, record: received })
      received.status = 200
      await this.#answer(turn, received, fault)
    } catch (error) {
      this.#refuse(error, received)
    }
    if (this.#answering === received) this.#answering = null
    if (fault?.closeIdle) this.close(fault.closeIdle.code, fault.closeIdle.reason ?? '')
  }

  #judge(received: ReceivedRequest, body: Json): Turn {
    const { headers, bodyText } = received
    if (body.generate !== undefined && typeof body.generate !== 'boolean')
      throw detail(400, 'Generate must be a boolean')
    const history = this.#conversation.upTo(body.previous_response_id)
    return judgeCreate({ account: this.#account, bodyChars: bodyText.length, headers, body }, history)
  }

  /** Sends the error, or breaks the connection; a disconnected peer needs no response. */
  #refuse(error: unknown, received: ReceivedRequest): void {
    if (error instanceof ConnectionReset) this.#sever()
    else if (this.#gone.signal.aborted) received.aborted = !this.#isEndedHere
    else if (error instanceof Refusal) {
      received.status = error.status
      received.finished = true
      this.#send(error)
    } else throw error
  }

  #send(refusal: Refusal): void {
    this.#socket?.send(JSON.stringify(refusal.toFrame(rateHeaders(this.#account, this.#world.now()))))
  }

  async #answer(turn: Turn, received: ReceivedRequest, fault: Fault | null): Promise<void> {
    const answer = turn.body.generate === false ? PREWARM : (this.#world.script?.(turn) ?? defaultAnswer(turn))
    const closeStream = this.#world.ledger.openStream()
    const end = await this.#play(this.#outgoing(turn, answer, fault), turn, received)
    closeStream()
    received.finished ||= end === 'finished'
    received.aborted = !received.finished && end === 'aborted'
  }

  #outgoing(turn: Turn, answer: Answer, fault: Fault | null): Iterable<Outgoing> {
    const { now, mint, socketReplays } = this.#world
    const perChunk = fault?.manyEvents?.perChunk ?? answer.perChunk ?? 1
    const plan = () => getFrames(planStream(openFrame(turn, now(), mint), answer, fault), perChunk)
    if (!answer.precomputed || fault) return plan()
    const known = socketReplays.get(answer) ?? Array.from(plan())
    socketReplays.set(answer, known)
    return known
  }

  async #play(steps: Iterable<Outgoing>, turn: Turn, received: ReceivedRequest): Promise<End> {
    for (const step of steps) {
      if (step.kind === 'frames') {
        // Before it is sent: the peer may continue it immediately.
        if (step.terminal) this.#conclude(step.terminal, turn, received)
        received.eventsSent += step.events
        await this.#write(step.texts)
      } else if (step.kind === 'binary') await this.#write([new Uint8Array([0, 1, 2])])
      else if (step.kind === 'wait') await this.#world.sleep(step.ms, this.#gone.signal)
      else if (step.kind === 'hang') await untilAborted(this.#gone.signal)
      else if (step.kind === 'close') {
        this.close(step.code, step.reason)
        return 'severed'
      } else {
        this.#sever()
        return 'severed'
      }
      if (this.#isEndedHere) return 'severed'
      if (this.#gone.signal.aborted) return 'aborted'
    }
    return 'finished'
  }

  #conclude(response: Json, turn: Turn, received: ReceivedRequest): void {
    received.finished = true
    this.#answering = null
    if (response.status !== 'failed') this.#conversation.remember(response, turn.body)
  }

  /** Resolves when the peer has read enough of it for more to be created, or has disconnected. */
  async #write(frames: (string | Uint8Array<ArrayBuffer>)[]): Promise<void> {
    const socket = this.#socket
    if (!socket || this.#gone.signal.aborted) return
    let taken = 0
    socket.cork(() => {
      for (const frame of frames) taken = socket.send(frame)
    })
    if (taken !== -1) return
    this.#drained ??= Promise.withResolvers()
    await this.#drained.promise
  }

  #sever(): void {
    this.#isEndedHere = true
    this.#socket?.terminate()
  }

  #stall(fault: Fault | null): void {
    if (fault?.stopReading || fault?.ignorePings) this.#socket?.pause()
  }
}

function parse(message: string | Buffer): Json | null {
  if (typeof message !== 'string') return null
  try {
    const frame: unknown = JSON.parse(message)
    return isJson(frame) ? frame : null
  } catch {
    return null // the sender gets it
  }
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => resolve(), { once: true })
  if (!signal.aborted) await promise
}
