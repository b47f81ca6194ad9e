/** Ends a handler: one value as JSON, as a fragment for htmx, or as a page. */
import { getCookie } from 'hono/cookie'
import { jsxRenderer } from 'hono/jsx-renderer'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { Bell } from '../../views/bell.tsx'
import { CaptureLine } from '../../views/capture-line.tsx'
import { Shell, type Visitor } from '../../views/shell.tsx'
import type { Titled } from '../../views/titles.ts'
import { UnknownParameters } from '../../views/ui/unknown-parameters.tsx'
import { ViewerClockContext } from '../../views/ui/viewer-clock.ts'
import type { Principal } from '../auth/principal.ts'
import { OWN_LIVE_ID, seesOnlyOwnKeys } from '../auth/view-scope.ts'
import type { AppEnv, Ctx } from '../boot/bindings.ts'
import { VERSION } from '../boot/version.ts'
import { iso } from '../lib/iso.ts'
import { holds } from '../model/users/permissions.ts'
import { ASSETS } from './assets.ts'
import { getBell } from './bell.ts'
import { getCaptureNotice } from './capture-notice.ts'
import { createMiddleware } from './handlers.ts'
import { representation } from './representation.ts'
import { getPage } from './return-path.ts'
import { serviceFor } from './service.ts'
import { notApplied } from './unknown-parameters.ts'
import { viewerClock } from './viewer-clock.ts'

interface PageProps {
  title?: string
  /** Parameters and values of the URL that the page does not have. */
  unknown?: readonly string[]
}

declare module 'hono' {
  interface ContextRenderer {
    // biome-ignore lint/style/useShorthandFunctionType: only an interface merges with Hono's own
    (content: string | Promise<string>, props?: PageProps): Response | Promise<Response>
  }
}

/** Called before the page reads any data, so that the page learns of every change from then on. */
export const markLive = createMiddleware((c, next) => {
  if (representation(c) === 'page') c.set('liveId', c.env.live.mark())
  return next()
})

/**
 * The shell wraps only pages; a fragment is the view itself. Mounted before everything that can throw, because the
 * error page needs it.
 */
export const shell = jsxRenderer<AppEnv>(
  ({ children, title, unknown = [] }, c) =>
    representation(c) === 'page' ? (
      <ViewerClockContext.Provider value={viewerClock(c)}>
        <Shell
          path={c.req.path}
          title={title}
          theme={getCookie(c, 'theme')}
          assets={ASSETS}
          version={VERSION}
          visitor={getVisitor(c)}
          liveId={getLiveId(c)}
          service={serviceFor(c)}
          isPrivate={getCookie(c, 'privacy') === 'on'}
          captureLine={getCaptureLine(c)}
          bell={c.get('principal') ? <Bell {...getBell(c)} /> : null}
        >
          <UnknownParameters unknown={unknown} />
          {children}
        </Shell>
      </ViewerClockContext.Provider>
    ) : (
      <ViewerClockContext.Provider value={viewerClock(c)}>
        <UnknownParameters unknown={unknown} />
        {children}
      </ViewerClockContext.Provider>
    ),
  (c) => ({ docType: representation(c) === 'page' }),
)

/** Ends a handler that shows something. The view gets exactly the value a JSON client would get. */
export const reply = <T extends object>(
  c: Ctx,
  value: T,
  View: Titled<T>,
  status: ContentfulStatusCode = 200,
): Response | Promise<Response> => {
  c.header('Vary', 'Accept, HX-Request')
  c.status(status)
  return representation(c) === 'json'
    ? c.json(value)
    : c.render(<View {...value} />, { title: View.title?.(value), unknown: notApplied(c) })
}

/**
 * Ends a mutation: a browser is redirected to `then`, so that a reload does not post again; other clients get the
 * value, or 204 for null. htmx updates the page in place when `then` is the current page.
 */
export const proceed = (
  c: Ctx,
  value: object | null,
  then: string,
  status: ContentfulStatusCode = 200,
): Response | Promise<Response> => {
  c.header('Vary', 'Accept, HX-Request')
  switch (representation(c)) {
    case 'page':
      return c.redirect(then, 303)
    case 'fragment':
      return redirectHtmx(c, then)
    case 'json':
      return value === null ? c.body(null, 204) : c.json(value, status)
  }
}

/** The response after something with a page of its own was made: JSON, or that page with its URL. */
export const replyAndOpen = (c: Ctx, value: object, path: string): Response => {
  c.header('Vary', 'Accept, HX-Request')
  switch (representation(c)) {
    case 'page':
      return c.redirect(path, 303)
    case 'fragment':
      c.header('HX-Redirect', path)
      return c.body(null)
    case 'json':
      return c.json(value)
  }
}

/** Redirects htmx. A page of the same path is fetched and morphed, so that open elements stay open. */
const redirectHtmx = (c: Ctx, then: string): Response => {
  const [path = then] = then.split('#')
  if (getPage(c)?.pathname === path.split('?')[0])
    c.header('HX-Location', JSON.stringify({ path, target: '#main', swap: 'innerMorph', push: 'false' }))
  else c.header('HX-Redirect', then)
  return c.body(null, 200)
}

/** Users who see only their own keys must not learn from the number of changes how busy others are. */
const getLiveId = (c: Ctx): string => {
  const principal = c.get('principal') as Principal | undefined // as: an error can occur before any gate
  return principal && seesOnlyOwnKeys(principal) ? OWN_LIVE_ID : c.get('liveId')
}

/** Only for users: guests send no requests. */
const getCaptureLine = (c: Ctx) => {
  const principal = c.get('principal') as Principal | undefined // as: an error can occur before any gate
  if (!principal || principal.kind === 'guest') return null
  const isLive = holds(principal.grants, 'dashboard:read') && !seesOnlyOwnKeys(principal)
  return <CaptureLine notice={getCaptureNotice(c)} isLive={isLive} now={iso(c.env.clock.now())} />
}

const getVisitor = (c: Ctx): Visitor | null => {
  const principal = c.get('principal') as Principal | undefined // as: an error can occur before any gate
  if (!principal) return null
  const { kind, grants } = principal
  if (kind !== 'account') return { kind, grants }
  const { row, role } = principal.person
  const name = row.displayName ?? row.username
  return { kind, grants, name, role: role.name, hasSession: principal.session !== null }
}
