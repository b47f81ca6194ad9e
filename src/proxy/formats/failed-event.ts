/** The event that ends a stream we could not finish, the one before it where nothing was sent, and two ways to keep a silent one alive. */
import { type AppError, openAiError } from '../../errors.ts'
import { frame } from '../../lib/sse-payload.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'

export interface FailedEventOptions {
  /** The id the client already saw in `response.created`. */
  responseId?: string | undefined
  /** One above the highest seen; the public contract wants a finite integer, so it starts at 0. */
  sequenceNumber?: number | undefined
  /** Whole seconds since epoch, as every timestamp inside a response object. */
  createdAt: number
}

/** SSE bytes of `response.failed` carrying the same error an HTTP answer would (proxy surface §2.1). */
export const responseFailedEvent = (err: AppError, opts: FailedEventOptions): Uint8Array =>
  frame({
    type: 'response.failed',
    sequence_number: opts.sequenceNumber ?? 0,
    response: {
      id: opts.responseId,
      object: 'response',
      created_at: opts.createdAt,
      status: 'failed',
      error: openAiError(err),
      incomplete_details: null,
    },
  })

/** SSE bytes of the `response.created` every public stream begins with (proxy surface §9.4). */
export const responseCreatedEvent = ({ id, model, createdAt }: BegunResponse): Uint8Array =>
  frame({
    type: 'response.created',
    sequence_number: 0,
    response: { id, object: 'response', created_at: createdAt, status: 'in_progress', model, output: [] },
  })

interface BegunResponse {
  id: string
  /** As the client asked for it. */
  model: string | null
  /** Whole seconds since epoch. */
  createdAt: number
}

/** For `/v1` and chat, whose clients skip comments. */
export const keepaliveComment: Uint8Array = encodeUtf8(': keepalive\n\n')

/** For the native route: its client's idle timer counts events with data only, never comments. */
export const keepaliveEvent: Uint8Array = frame({ type: 'codex.keepalive' })
