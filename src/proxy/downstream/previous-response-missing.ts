/** The error that makes a native socket client resend its conversation; older clients know only one of two codes. */
import { AppError, openAiError } from '../../errors.ts'

/**
 * Minor version: 0.118 to 0.140 show `previous_response_not_found` to the user and end the turn; 0.150 and later handle
 * it.
 */
const FIRST_HANDLING_MINOR = 150

/**
 * The error itself or, for an older native client, the code on which all versions resend (seen with 0.118, 0.140,
 * 0.169, and Zed's adapter, which is 0.137).
 */
export function errorForResend(err: AppError, headers: Headers): AppError {
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
