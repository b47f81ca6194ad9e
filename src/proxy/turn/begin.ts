/** Opens an admitted turn and guarantees that it is settled, however it ends. */
import type { Bindings } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { toClientError } from './accounts-exhausted.ts'
import { attempt } from './attempts.ts'
import type { Flow } from './flow.ts'
import type { Metered } from './meter.ts'
import type { FlowEnd, FlowListener } from './open-answer.ts'
import type { ProxyDeps } from './proxy-deps.ts'
import { errorStatus, getStatus, settle, toFailedEnd } from './settle.ts'
import { ClientGone, type Turn } from './turn.ts'

export interface Served {
  env: Bindings
  turn: Turn
  /** Aborts `turn.signal` from outside. */
  turnAbort: AbortController
  /** Aborts when the client disconnects. */
  left: AbortSignal
  /** Opens the turn; defaults to `attempt`. */
  open?: (proxyDeps: ProxyDeps, turn: Turn) => Promise<Flow>
  /** The final answer, where building it may still fail after the turn succeeded: settling waits for it. */
  answer?: () => Promise<unknown>
}

/**
 * `sent.headers` is read when the turn ends, because headers already sent say 200. Throws the `AppError` of a turn that
 * failed before its commit point.
 */
export const begin = (served: Served, sent: { headers: boolean }): Promise<Flow> =>
  beginWith(served, sent, served.open ?? attempt)

/** The same for what any exchange commits to. */
export const beginWith = async <Opened extends { whenEnded(listener: FlowListener): void }>(
  served: Omit<Served, 'open'>,
  sent: { headers: boolean },
  open: (proxyDeps: ProxyDeps, turn: Turn) => Promise<Opened>,
): Promise<Opened> => {
  const { env, turn } = served
  const scope = new TurnScope(served, sent)
  try {
    const flow = await open(env.proxyDeps, turn)
    flow.whenEnded(scope)
    return flow
  } catch (err) {
    const isGone = err instanceof ClientGone
    const error = isGone ? new AppError('stream_incomplete', { cause: err }) : toClientError(turn, AppError.from(err))
    scope.ended(toFailedEnd(turn, error), null)
    throw error
  }
}

/**
 * From the first attempt to settling; ends the turn when its client disconnects. Has its own fields so that a long
 * stream keeps nothing else in memory.
 */
class TurnScope implements EventListenerObject {
  readonly #env: Bindings
  readonly #turn: Turn
  readonly #turnAbort: AbortController
  readonly #left: AbortSignal
  readonly #answer: Served['answer']
  readonly #sent: { headers: boolean }

  constructor({ env, turn, turnAbort, left, answer }: Omit<Served, 'open'>, sent: { headers: boolean }) {
    this.#env = env
    this.#turn = turn
    this.#turnAbort = turnAbort
    this.#left = left
    this.#answer = answer
    this.#sent = sent
    left.addEventListener('abort', this)
    if (left.aborted) this.handleEvent()
    env.turns.add(turnAbort)
  }

  /** The client disconnected. */
  handleEvent(): void {
    this.#turnAbort.abort(new ClientGone())
  }

  ended(end: FlowEnd, meter: Metered | null): void {
    // the native client hangs up after the terminal event, which is not a cancellation
    this.#left.removeEventListener('abort', this)
    if (end.status !== 'ok' || !this.#answer) this.#settle(end, meter)
    else
      this.#answer().then(
        () => this.#settle(end, meter),
        (err) => this.#settle({ status: 'error', error: AppError.from(err) }, meter),
      )
  }

  #settle(end: FlowEnd, meter: Metered | null): void {
    this.#env.turns.delete(this.#turnAbort)
    settle(this.#env, this.#turn, { ...end, httpStatus: getStatus(this.#turn, end, this.#sent.headers), meter })
  }
}

/** Settles a turn that was rejected before any attempt. The answer is the error itself. */
export const rejectTurn = (env: Bindings, turn: Turn, error: AppError): void => {
  settle(env, turn, { status: 'error', error, httpStatus: errorStatus(turn, error), meter: null })
}
