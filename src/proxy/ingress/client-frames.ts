/** Validates the envelope of a client's socket frame. The upstream validates the rest. */
import { z } from 'zod'
import { AppError } from '../../errors.ts'
import { parseJson } from '../../lib/json.ts'

/** `generate: false` is a prewarm: it announces how the next turn will begin (Codex CLI 0.169). */
const Create = z.looseObject({
  type: z.literal('response.create'),
  previous_response_id: z.string().max(512).nullish(),
  generate: z.boolean().nullish(),
})
/** Cancels the running turn. */
const Interrupt = z.looseObject({ type: z.literal('response.interrupt') })
/** Older clients acknowledge what they have read; it has no effect. */
const Processed = z.looseObject({ type: z.literal('response.processed') })

const ClientFrame = z.discriminatedUnion('type', [Create, Interrupt, Processed])

type ClientFrame = z.output<typeof ClientFrame>
export type CreateFrame = z.output<typeof Create>

/** Throws `malformed_json` or `invalid_request_error`, both 400. */
export const parseFrame = (text: string): ClientFrame => {
  const json = parseJson(text)
  if (json === undefined) throw new AppError('malformed_json', { message: 'The frame is not valid JSON.' })
  const parsed = ClientFrame.safeParse(json)
  if (parsed.success) return parsed.data
  const { path, message } = parsed.error.issues[0]! // a failure has an issue
  throw new AppError('invalid_request_error', {
    message: path[0] === 'type' || path.length === 0 ? 'The frame has an unknown type.' : message,
    param: path.join('.') || 'type',
  })
}
