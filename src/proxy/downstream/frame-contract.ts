/** What a socket client receives of a turn: the same events as over HTTP, one text frame each. */
import { type AppError, openAiError, openAiErrorHeaders } from '../../errors.ts'
import type { SseEvent } from '../../lib/sse.ts'
import { eventData } from '../../lib/sse-payload.ts'
import { withoutAccountFacts } from '../formats/account-facts.ts'
import { PublicEvents } from '../formats/public-events.ts'
import type { Meter } from '../turn/meter.ts'
import {
  type Contract,
  type ContractOptions,
  isRateEvent,
  NativeContract,
  ownRateEvent,
  withRateEvents,
} from './contracts.ts'

export interface FrameContract {
  /** One frame for each event this client receives. */
  frames(events: readonly SseEvent[], meter: Meter): string[]
  /** Ends a turn that broke off; the last frame is its only terminal event. */
  failed(err: AppError, meter: Meter): string[]
  /** Sent when nothing else has been sent for a while; null: send a ping instead. */
  readonly keepalive: string | null
}

const KEEPALIVE = JSON.stringify({ type: 'codex.keepalive' })

/**
 * Events pass unchanged, except `error`, which the native client does not treat as terminal, and rate limits. A socket
 * has no headers for each turn, so the client's limits come first as an event.
 */
export const nativeFrames = (options: ContractOptions): FrameContract => {
  const contract = new NativeContract(options)
  let isFirst = true
  return {
    frames: (events, meter) => {
      const own = isFirst && !events.some(isRateEvent) ? ownRateEvent(options.rateEvents) : null
      isFirst = false
      const shown = own ? [own, ...events] : events
      if (meter.terminal === 'error') return translated(contract, shown, meter)
      return withRateEvents(shown, options.rateEvents).flatMap((event) => {
        const { type, data } = withoutAccountFacts(event)
        return type === null || data === null ? [] : [data]
      })
    },
    failed: (err, meter) => [getText(contract.fail(err, meter))],
    keepalive: KEEPALIVE,
  }
}

export const publicFrames = (options: ContractOptions): FrameContract => {
  const answer = new PublicEvents({ ...options, announcesErrors: false })
  return {
    frames: (events, meter) => events.flatMap((event) => answer.of(event, meter)).map(getText),
    failed: (err, meter) => answer.failed(err, meter).map(getText),
    keepalive: null,
  }
}

/** One event at a time, because each is a frame. */
const translated = (contract: Contract, events: readonly SseEvent[], meter: Meter): string[] =>
  events.flatMap((event) => (event.type === null ? [] : contract.write([event], meter).map(getText)))

const getText = (bytes: Uint8Array): string => eventData(bytes) ?? ''

/** A rejection on a socket; the client reads `status` and `headers` as it would over HTTP (Codex CLI 0.169). */
export const errorFrame = (err: AppError): string => {
  const headers = openAiErrorHeaders(err)
  return JSON.stringify({
    type: 'error',
    status: err.status,
    error: openAiError(err),
    ...(Object.keys(headers).length > 0 && { headers }),
  })
}
