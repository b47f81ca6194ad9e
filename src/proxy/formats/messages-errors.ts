/** Errors with the wording that Messages clients react to. */
import { AppError } from '../../errors.ts'

export type MessagesErrors = (err: AppError) => AppError

/** Claude Code compacts the conversation only for this wording and status 400 (2.1.206 and 2.1.332). */
export const messagesErrors =
  ({ tokens, maximum }: { tokens: number; maximum: number }): MessagesErrors =>
  (err) => {
    if (!isTooLong(err)) return err
    const limit = statedMaximum(err) ?? maximum
    return new AppError('invalid_request_error', {
      message: `prompt is too long: ${Math.max(tokens, limit + 1)} tokens > ${limit} maximum`,
      cause: err,
    })
  }

const isTooLong = ({ code, status, message, extra }: AppError): boolean =>
  extra.upstream?.code === 'context_length_exceeded' ||
  (code === 'model_source_error' && status === 400 && TOO_LONG.test(message))

/** Most model sources say it only in the message. */
const TOO_LONG = /context (?:length|window|size)|maximum model length|(?:prompt|input|conversation) (?:is )?too long/i

const statedMaximum = ({ code, message }: AppError): number | null => {
  const [, after, before] = (code === 'model_source_error' && MAXIMUM.exec(message)) || []
  const limit = Number((after ?? before)?.replaceAll(',', ''))
  return limit > 0 ? limit : null
}

/** "maximum context length is 8192 tokens", or "32768 maximum context length". */
const MAXIMUM =
  /(?:context (?:length|window|size)|maximum model length)(?: is| of)?(?: only)?:? \(?(\d[\d,]*)|(\d[\d,]*) (?:tokens )?maximum context/i
