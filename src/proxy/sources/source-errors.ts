/** The errors of requests that a model source failed to serve. */
import { AppError } from '../../errors.ts'
import type { UpstreamFailure } from '../exchange/upstream-failure.ts'

type Named = { readonly name: string }

export const sourceUnreachableError = ({ name }: Named, cause?: unknown): AppError =>
  new AppError('model_source_unreachable', { message: `The model source '${name}' could not be reached.`, cause })

export const sourceTimeoutError = ({ name }: Named): AppError =>
  new AppError('upstream_timeout', { message: `The model source '${name}' did not answer in time.` })

export const credentialsRejected = ({ name }: Named, cause?: unknown): AppError =>
  new AppError('model_source_credentials_error', {
    message: `The model source '${name}' rejected its API key. Set another one in the Sluice dashboard.`,
    cause,
  })

/** `what`: what it answered with, as the end of a sentence. */
export const notJson = ({ name }: Named, what: string): AppError =>
  new AppError('invalid_upstream_response', { message: `The model source '${name}' answered with ${what}.` })

export const noUsage = ({ name }: Named): AppError =>
  new AppError('usage_unavailable', {
    message: `The model source '${name}' did not report the usage, which the limits of this API key need.`,
  })

const brokenOff = ({ name }: Named, cause: unknown): AppError =>
  new AppError('stream_incomplete', {
    message: `The stream from the model source '${name}' ended before the answer was complete.`,
    cause,
  })

/** The error of a call that failed, wherever it failed. Sluice's own errors stay as they are. */
export const sourceFailure = (source: Named, failure: UpstreamFailure): AppError => {
  const { where, code, type, message, body } = failure
  if (code === 'upstream_timeout') return sourceTimeoutError(source)
  if (body instanceof AppError && body.code !== 'upstream_error') return body
  if (where === 'event') return new AppError('model_source_error', { message, upstream: { code, type } })
  if (where === 'stream') return brokenOff(source, body)
  return sourceUnreachableError(source, body)
}

export const cannotCompactError = (): AppError =>
  new AppError('invalid_request_error', {
    message: 'The model of this request is served by a model source, which cannot compact conversations.',
    param: 'model',
  })
