/** The path by which a request is routed. */
import { getPath } from 'hono/utils/url'

/** For an unusable or missing Host the runtime's URL is only the path, which the router would misread. */
export const routedPath = (request: Request): string =>
  request.url.startsWith('/') ? request.url.replace(/[?#].*/s, '') : getPath(request)
