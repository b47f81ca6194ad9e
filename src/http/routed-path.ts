/** The path a request is routed by. */
import { getPath } from 'hono/utils/url'

/** With a Host that cannot be used, or none, the runtime's URL is the path alone, in which a router finds a wrong one. */
export const routedPath = (request: Request): string =>
  request.url.startsWith('/') ? request.url.replace(/[?#].*/s, '') : getPath(request)
