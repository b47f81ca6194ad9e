/** The ending of a handler: one value as JSON, as a fragment for htmx, or as a page. */
import type { Context } from 'hono'
import { getCookie } from 'hono/cookie'
import type { FC } from 'hono/jsx'
import { jsxRenderer } from 'hono/jsx-renderer'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { Shell } from '../../views/shell.tsx'
import type { AppEnv } from '../bindings.ts'
import { VERSION } from '../version.ts'
import { ASSETS } from './assets.ts'

declare module 'hono' {
  interface ContextRenderer {
    // biome-ignore lint/style/useShorthandFunctionType: only an interface merges with Hono's own
    (content: string | Promise<string>, props?: { title?: string }): Response | Promise<Response>
  }
}

/** htmx gets a fragment, a browser a page, every other client JSON. Opening an /api URL by hand shows JSON. */
export const representation = (c: Context): 'json' | 'fragment' | 'page' => {
  const { method, path } = c.req
  if (c.req.header('hx-request') === 'true' && c.req.header('hx-request-type') !== 'full') return 'fragment'
  if (method === 'GET' && path.startsWith('/api/')) return 'json'
  return c.req.header('accept')?.includes('text/html') ? 'page' : 'json'
}

/**
 * The shell goes around pages only; a fragment is the view itself. Mounted before everything that can throw, because the
 * error page needs it.
 */
export const shell = jsxRenderer<AppEnv>(
  ({ children, title }, c) =>
    representation(c) === 'page' ? (
      <Shell
        path={c.req.path}
        title={title}
        theme={getCookie(c, 'theme')}
        assets={ASSETS}
        version={VERSION}
        isSignedIn={isSignedIn(c)}
      >
        {children}
      </Shell>
    ) : (
      // biome-ignore lint/complexity/noUselessFragments: the children may be several, and a renderer returns one element
      <>{children}</>
    ),
  (c) => ({ docType: representation(c) === 'page' }),
)

/**
 * Ends a handler. The view is given exactly the value a JSON client would get, never more. `then` is where a browser
 * without script goes (303) after a mutation, so that a reload does not post again.
 */
export const reply = <T extends object>(
  c: Context<AppEnv>,
  value: T,
  View: FC<T>,
  status: ContentfulStatusCode = 200,
  { then }: { then?: string } = {},
): Response | Promise<Response> => {
  const kind = representation(c)
  c.header('Vary', 'Accept, HX-Request, HX-Request-Type')
  if (kind === 'page' && then !== undefined) return c.redirect(then, 303)
  c.status(status)
  return kind === 'json' ? c.json(value) : c.render(<View {...value} />)
}

/** Typed as always there, but an error can come before any gate. */
const isSignedIn = (c: Context<AppEnv>): boolean => (c.get('principal') as object | undefined) !== undefined
