/** The session cookie: 32 random bytes, inaccessible to scripts and other sites (decisions §4). */
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import type { Ctx } from '../boot/bindings.ts'
import { DAY_MS } from '../lib/durations.ts'

const NAME = 'sluice_session'
/** The cookie outlives its session, so that an expired session differs from no session. */
const OUTLIVES_MS = 30 * DAY_MS
/** Browsers keep cookies no longer (RFC 6265bis §5.5), and Hono throws above that, for example after the clock was ahead. */
const MAX_MS = 400 * DAY_MS

/** A cookie that holds a token and outlives it by `outlivesMs`. */
export const tokenCookie = (name: string, { outlivesMs }: { outlivesMs: number }) => ({
  read: (c: Ctx): string | null => getCookie(c, name, 'host') ?? (isHttps(c) ? null : (getCookie(c, name) ?? null)),

  /** `expiresAt`: of the session, in ms since epoch. */
  write: (c: Ctx, token: string, expiresAt: number): void => {
    dropHttpsCookie(c, name)
    setCookie(c, name, token, {
      ...getAttributes(c),
      httpOnly: true,
      sameSite: 'Lax',
      path: '/',
      maxAge: Math.ceil(Math.max(0, Math.min(MAX_MS, expiresAt - c.env.clock.now() + outlivesMs)) / 1000),
    })
  },

  clear: (c: Ctx): void => {
    dropHttpsCookie(c, name)
    deleteCookie(c, name, { ...getAttributes(c), path: '/' })
  },
})

/** A cookie from https through a proxy that is no longer trusted would be read first and hide a new one. */
const dropHttpsCookie = (c: Ctx, name: string): void => {
  if (isHttps(c) || getCookie(c, name, 'host') === undefined) return
  deleteCookie(c, name, { secure: true, prefix: 'host', path: '/' })
}

/** The prefix makes browsers accept the cookie only from this host over TLS (RFC 6265bis §4.1.3.2). */
const getAttributes = (c: Ctx) => (isHttps(c) ? ({ secure: true, prefix: 'host' } as const) : {})

/** As the browser sees it: TLS here, or at a trusted proxy. */
const isHttps = (c: Ctx): boolean =>
  new URL(c.req.url).protocol === 'https:' ||
  (c.var.viaProxy && c.req.header('x-forwarded-proto')?.toLowerCase() === 'https')

export const {
  read: readSessionToken,
  write: writeSessionToken,
  clear: clearSessionToken,
} = tokenCookie(NAME, { outlivesMs: OUTLIVES_MS })
