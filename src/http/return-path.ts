/** Where a browser came from and where it continues: only paths of our own pages, whatever a link says. */
import type { Context } from 'hono'

const HOME = '/dashboard'
/** A base that reveals paths naming another host. */
const NOWHERE = 'http://sluice.invalid'
/** Parameters about the last attempt, which are not passed on. */
export const FEEDBACK_PARAMETERS = ['problem', 'field', 'wait', 'done', 'draft']

/** The `return` parameter as a path with query and fragment; the overview when missing or foreign. */
export const returnPath = (c: Context): string => ownPath(c.req.query('return') ?? '') ?? HOME

/** `page?return=…`, without `return` for the default. */
export const withReturn = (page: string, path: string): string =>
  path === HOME ? page : `${page}?return=${encodeURIComponent(path)}`

/** The page with the form or fragment of this request, without messages; null when unknown or not ours. */
export const getPage = (c: Context): URL | null => {
  const here = URL.parse(c.req.url) // null for an unusable Host
  if (here === null) return null
  if (c.req.method === 'GET' && c.req.header('hx-request') !== 'true') return clean(here)
  const from = c.req.header('hx-current-url') ?? c.req.header('referer')
  const url = from === undefined ? null : URL.parse(from)
  return url && url.host === here.host && ownPath(url.pathname) !== null ? clean(url) : null
}

const clean = (url: URL): URL => {
  for (const name of FEEDBACK_PARAMETERS) url.searchParams.delete(name)
  return url
}

const ownPath = (path: string): string | null => {
  const url = path.startsWith('/') ? URL.parse(path, NOWHERE) : null
  return url && url.origin === NOWHERE && !url.pathname.startsWith('/api/') && !url.pathname.startsWith('//')
    ? url.pathname + url.search + url.hash
    : null
}
