/** The error for a model client whose path has no route: names the intended address and the base URL to set. */
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { originForLinks } from './public-origin.ts'

const NATIVE_BASE = '/backend-api/codex'
const PUBLIC_BASE = '/v1'

/** Paths below a base URL: those served, and other OpenAI endpoints. */
const SERVED = 'responses(?:/compact)?|chat/completions|models(?:/[^/]+)?|messages(?:/count_tokens)?'
const OTHERS = String.raw`completions|embeddings|images/\w+|audio/\w+|moderations|files|batches|conversations|realtime`
const ENDS_IN_SERVED = new RegExp(`/(${SERVED})/*$`)
const ENDS_LIKE_MODEL_TRAFFIC = new RegExp(`^(.*?)/(?:${SERVED}|${OTHERS})/*$`)
/** Parts of base URLs, complete or shortened. */
const BASE_WORDS = /^\/*((api|openai|codex|backend-api|wham)(\/+|$))*$/
const HAS_VERSION = /\/v1(\/|$)/
const NATIVE_WORDS = /\/(codex|backend-api|wham)(\/|$)/
const MAX_PATH_CHARS = 100

/** Whether the unknown path looks like a model client with another base URL. */
export const looksLikeModelTraffic = (path: string): boolean => {
  const base = ENDS_LIKE_MODEL_TRAFFIC.exec(path)?.[1]
  return base !== undefined && (BASE_WORDS.test(base) || HAS_VERSION.test(base))
}

/** A `not_found` error for a model client with an unknown path. */
export const wrongBaseUrl = (c: Ctx): AppError => {
  const { method, path } = c.req
  const origin = originForLinks(c)
  const resource = ENDS_IN_SERVED.exec(path)?.[1] ?? null
  const isMessages = resource?.startsWith('messages') === true
  const isNative = NATIVE_WORDS.test(path) || c.req.header('originator') !== undefined
  const base = isMessages ? '' : isNative && !resource?.startsWith('chat/') ? NATIVE_BASE : PUBLIC_BASE
  const meant = resource === null ? null : `${base || PUBLIC_BASE}/${resource}`
  const what = `${method} ${path.length > MAX_PATH_CHARS ? `${path.slice(0, MAX_PATH_CHARS)}…` : path} does not exist.`
  return new AppError('not_found', {
    message: `${what} ${adviceFor({ path, origin, base, meant })}`,
    // Claude Code replaces the message of a 404 by one about the model (2.1.332).
    ...(isMessages && meant !== path && { status: 405 }),
  })
}

/** Does not suggest the base URL the client already uses. */
const adviceFor = ({
  path,
  origin,
  base,
  meant,
}: {
  path: string
  origin: string
  base: string
  meant: string | null
}) => {
  if (meant !== null && meant !== path)
    return `Use ${origin}${meant} instead. Set the base URL of the client to ${origin}${base}.`
  return `${path}/`.startsWith(`${base}/`)
    ? 'Check the method and the path.'
    : `Check the path. The base URL is ${origin}${base}.`
}
