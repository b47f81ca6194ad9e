/** What a browser may do with our pages, and that nothing of the dashboard is kept in a cache. */
import { createMiddleware } from './handlers.ts'

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * `Referrer-Policy` is `same-origin` and not `no-referrer`, under which plain form posts carry `Origin: null` and our own
 * cross-site rule would refuse them (Fetch standard).
 */
export const securityHeaders = createMiddleware(async (c, next) => {
  await next()
  const { headers } = c.res
  headers.set('x-content-type-options', 'nosniff')
  const isPage = headers.get('content-type')?.startsWith('text/html') ?? false
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') ?? false
  if (isPage) {
    headers.set('content-security-policy', CONTENT_SECURITY_POLICY)
    headers.set('referrer-policy', 'same-origin')
  }
  // Pages answer JSON to who asks for it; only what is the same for everybody is kept.
  if (!c.req.path.startsWith('/assets/') || !c.res.ok)
    headers.set('cache-control', isStream ? 'no-store, no-transform' : 'no-store')
})
