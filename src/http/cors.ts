/**
 * Browser clients: pages of origins listed in the setting may call `/v1`, always with a key (decisions §3 "Browser
 * clients").
 */
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'

const PUBLIC_PATH = /^\/v1(\/|$)/
const METHODS = 'GET, POST, DELETE'
/** How long browsers cache a preflight; short, so that removing an origin takes effect soon. */
const MAX_AGE_SECONDS = 60
/** Readable without being exposed (Fetch standard, CORS-safelisted response-header names), and connection headers. */
const NOT_EXPOSED = new Set(['cache-control', 'content-type', 'content-length', 'date', 'vary', 'connection'])
/** The subprotocol in which OpenAI's realtime API accepts keys from browsers. */
const KEY_PROTOCOL = 'openai-insecure-api-key.'

/** Longer origins are shortened in errors. */
const MAX_ORIGIN_CHARS = 100

/** The origin of the calling page if it is listed and the route is public; otherwise null. */
export const listedOrigin = (c: Ctx): string | null => {
  const origin = c.req.header('origin')?.trim()
  if (!origin || !PUBLIC_PATH.test(c.req.path)) return null
  const listed = c.env.settings.current().corsOrigins.split(/[\s,]+/)
  return listed.includes(origin.toLowerCase()) ? origin : null
}

const isPreflight = (c: Ctx): boolean =>
  c.req.method === 'OPTIONS' && Boolean(c.req.header('access-control-request-method'))

/** The error for a preflight from an unlisted origin; null for other requests. */
export const unlistedPreflight = (c: Ctx): AppError | null => {
  const origin = c.req.header('origin')?.trim()
  if (!origin || !isPreflight(c) || !PUBLIC_PATH.test(c.req.path) || listedOrigin(c) !== null) return null
  const name = origin.length > MAX_ORIGIN_CHARS ? `${origin.slice(0, MAX_ORIGIN_CHARS)}…` : origin
  const message =
    origin === 'null'
      ? 'This page has no origin, so it cannot be listed in the setting corsOrigins. Serve it from an http:// or https:// address.'
      : `The origin ${name} is not listed in the setting corsOrigins. Add it there to let its pages use /v1.`
  return new AppError('cross_site_request_rejected', { message })
}

/** The answer to a preflight from a listed origin; null for other requests. Any header may be sent, since a key must be. */
export const preflightAnswer = (c: Ctx): Response | null => {
  if (!isPreflight(c) || listedOrigin(c) === null) return null
  const wanted = c.req.header('access-control-request-headers')
  const isPrivate = c.req.header('access-control-request-private-network') === 'true'
  return new Response(null, {
    status: 204,
    headers: {
      'access-control-allow-methods': METHODS,
      'access-control-max-age': String(MAX_AGE_SECONDS),
      ...(wanted && { 'access-control-allow-headers': wanted }),
      ...(isPrivate && { 'access-control-allow-private-network': 'true' }),
      vary: 'Access-Control-Request-Headers',
    },
  })
}

/** Lets the page read the answer and all its headers. Credentials are never allowed, so requests carry no cookies. */
export const allowOrigin = (c: Ctx): void => {
  if (c.env.settings.current().corsOrigins === '' || !PUBLIC_PATH.test(c.req.path)) return
  const { headers } = c.res
  headers.append('vary', 'Origin')
  const origin = listedOrigin(c)
  if (origin === null) return
  const exposed = [...headers.keys()].filter((name) => !NOT_EXPOSED.has(name) && !name.startsWith('access-control-'))
  headers.set('access-control-allow-origin', origin)
  headers.set('access-control-expose-headers', exposed.join(', '))
}

/**
 * The client's credentials: its header or, for sockets of a listed origin, which cannot set headers, the key in a
 * subprotocol.
 */
export const getAuthorization = (c: Ctx): string | null => {
  const header = c.req.header('authorization')
  if (header !== undefined) return header
  if (offeredHere(c).length === 0 || listedOrigin(c) === null) return null
  const key = offeredHere(c).find((name) => name.startsWith(KEY_PROTOCOL))
  return key === undefined ? null : `Bearer ${key.slice(KEY_PROTOCOL.length)}`
}

/**
 * The subprotocol for a socket of a listed origin: browsers close the connection unless one of theirs is chosen.
 * `realtime` is preferred, as OpenAI does (assumed); the one with the key only if there is no other.
 */
export const chosenProtocol = (c: Ctx): string | null => {
  const offered = offeredHere(c)
  if (offered.length === 0 || listedOrigin(c) === null) return null
  const plain = offered.filter((name) => !name.startsWith('openai-'))
  return plain.find((name) => name === 'realtime') ?? plain[0] ?? offered[0] ?? null
}

/** Every subprotocol the client offers. */
const offeredHere = (c: Ctx): string[] =>
  c.req
    .header('sec-websocket-protocol')
    ?.split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '') ?? []

/** Those that may leave: not the one with the client's key. */
export const offeredProtocols = (c: Ctx): string[] => offeredHere(c).filter((name) => !name.startsWith(KEY_PROTOCOL))
