/** Where a browser came from and where it goes on to: paths of our own pages only, whatever a link says. */
import type { Context } from 'hono'

const HOME = '/dashboard'
/** Parsed against this, a path that names another host shows itself. */
const NOWHERE = 'http://sluice.invalid'
/** What a page says about the last attempt; it is not handed on. */
const SAID_ONCE = ['problem', 'field', 'wait', 'done', 'draft']

/** The `return` of the query as a path with its query and fragment; the overview without one, or with a foreign one. */
export const returnPath = (c: Context): string => ownPath(c.req.query('return') ?? '') ?? HOME

/** `page?return=…`, without a return to where everybody goes anyway. */
export const withReturn = (page: string, path: string): string =>
  path === HOME ? page : `${page}?return=${encodeURIComponent(path)}`

/** The page whose form or fragment this request is, with what it said removed; null when it does not say, or is not ours. */
export const pageOf = (c: Context): URL | null => {
  const here = URL.parse(c.req.url) // null for a Host that cannot be used
  if (here === null) return null
  if (c.req.method === 'GET' && c.req.header('hx-request') !== 'true') return clean(here)
  const from = c.req.header('hx-current-url') ?? c.req.header('referer')
  const url = from === undefined ? null : URL.parse(from)
  return url && url.host === here.host && ownPath(url.pathname) !== null ? clean(url) : null
}

const clean = (url: URL): URL => {
  for (const name of SAID_ONCE) url.searchParams.delete(name)
  return url
}

const ownPath = (path: string): string | null => {
  const url = path.startsWith('/') ? URL.parse(path, NOWHERE) : null
  return url && url.origin === NOWHERE && !url.pathname.startsWith('/api/') && !url.pathname.startsWith('//')
    ? url.pathname + url.search + url.hash
    : null
}
