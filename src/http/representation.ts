/** The form a client is answered in. */
import type { Context } from 'hono'

/** htmx gets a fragment, a browser a page, every other client JSON. Opening an /api URL in a browser shows JSON. */
export const representation = (c: Context): 'json' | 'fragment' | 'page' => {
  const { method, path } = c.req
  if (c.req.header('hx-request') === 'true') return 'fragment'
  if (method === 'GET' && path.startsWith('/api/')) return 'json'
  return c.req.header('accept')?.includes('text/html') ? 'page' : 'json'
}
