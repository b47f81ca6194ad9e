/** Limits what a browser may do with our pages, and keeps the dashboard out of caches. */
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
 * `Referrer-Policy` is `same-origin`, not `no-referrer`: plain form posts would then send `Origin: null`, which our
 * cross-site check rejects (Fetch standard).
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
  // Pages also answer JSON, so only assets, the same for everyone, may be cached.
  if (!c.req.path.startsWith('/assets/') || !c.res.ok)
    headers.set('cache-control', isStream ? 'no-store, no-transform' : 'no-store')
})
