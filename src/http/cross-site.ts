/** Rejects requests that another site's page made the browser send: dashboard changes, and turns without a key. */
import { isOwnHost } from '../auth/caller.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { createMiddleware } from './handlers.ts'

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])
/** Routes for bearer clients: another site's page cannot make a browser send that header. */
const BEARER_ROUTES = ['/api/fleet/', '/api/codex/']

/**
 * Covers everything under `/api/`, JSON and forms (spec §5, cross-site protection). Throws
 * `cross_site_request_rejected`, naming what arrived.
 */
export const crossSite = createMiddleware(async (c, next) => {
  if (isCovered(c) && !isSameOrigin(c)) throw rejection(c)
  await next()
})

/**
 * For model clients admitted without a key: any page can post plain text to this machine without a preflight, which is
 * enough to spend a turn. Since no cookie is involved, Hosts that a page could give itself are rejected too. Throws
 * `cross_site_request_rejected`.
 */
export const rejectForeignPages = (c: Ctx): void => {
  rejectOtherSites(c)
  if (isFromPage(c) && !isOwnHost(c) && !hasBearer(c)) throw rejection(c, FOREIGN_NAME)
}

/** Applies to every method, because a socket begins with a GET. Throws `cross_site_request_rejected`. */
export const rejectOtherSites = (c: Ctx): void => {
  if (!isSameOrigin(c) && !hasBearer(c)) throw rejection(c)
}

const isCovered = (c: Ctx): boolean =>
  !SAFE_METHODS.has(c.req.method) &&
  c.req.path.startsWith('/api/') &&
  !BEARER_ROUTES.some((prefix) => c.req.path.startsWith(prefix)) &&
  !hasBearer(c)

/** Another site's page cannot attach one: browsers send a preflight, and only listed origins, which need a key, pass. */
const hasBearer = (c: Ctx): boolean => /^bearer\s+\S/i.test(c.req.header('authorization') ?? '')

/**
 * Both must agree: the browser's `Sec-Fetch-Site`, and an `Origin` that is ours. A client that sends neither is not a
 * browser.
 */
const isSameOrigin = (c: Ctx): boolean => {
  const verdict = c.req.header('sec-fetch-site')
  if (verdict !== undefined && verdict !== 'same-origin' && verdict !== 'none') return false
  const origin = c.req.header('origin')
  return origin === undefined || ownOrigins(c).includes(origin.toLowerCase())
}

/** False for addresses typed by the user. */
const isFromPage = (c: Ctx): boolean =>
  c.req.header('origin') !== undefined || c.req.header('sec-fetch-site') === 'same-origin'

/** Our origins: by Host, by configuration, and by a trusted TLS-terminating proxy. */
const ownOrigins = (c: Ctx): string[] => {
  const { host, origin } = new URL(c.req.url)
  const { PUBLIC_URL } = c.env.env
  return [origin, ...forwardedOrigin(c, host), ...(PUBLIC_URL ? [new URL(PUBLIC_URL).origin] : [])]
}

/** Empty when the peer is not trusted. With several hops the header is a list, which matches no origin. */
export const forwardedOrigin = (c: Ctx, host: string): string[] => {
  if (!c.var.viaProxy) return []
  const protocol = c.req.header('x-forwarded-proto')?.toLowerCase()
  const name = c.req.header('x-forwarded-host')?.toLowerCase() ?? host
  return protocol === 'https' || protocol === 'http' ? [`${protocol}://${name}`] : []
}

const BEHIND_PROXY =
  'This request came from another site, so it was rejected. ' +
  'If you use a reverse proxy, let it forward the Host header unchanged, including the port.'
const FOREIGN_NAME =
  'Web pages on this host name need an API key. Send one, set SLUICE_PUBLIC_URL to this address, or use the IP address.'

const rejection = (c: Ctx, message = BEHIND_PROXY): AppError =>
  new AppError('cross_site_request_rejected', {
    message,
    details: {
      host: c.req.header('host') ?? null,
      origin: c.req.header('origin') ?? null,
      secFetchSite: c.req.header('sec-fetch-site') ?? null,
    },
  })
