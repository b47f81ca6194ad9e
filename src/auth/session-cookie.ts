/** The session cookie: 32 random bytes, inaccessible to scripts and other sites (decisions §4). */
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import type { Ctx } from '../bindings.ts'
import { DAY_MS } from '../lib/durations.ts'

const NAME = 'sluice_session'
/** The cookie outlives its session, so that an expired session can be told from none. */
const OUTLIVES_MS = 30 * DAY_MS
/** Browsers keep cookies no longer (RFC 6265bis §5.5), and Hono throws above that, for example after the clock was ahead. */
const MOST_MS = 400 * DAY_MS

export const readSessionToken = (c: Ctx): string | null =>
  getCookie(c, NAME, 'host') ?? (isHttps(c) ? null : (getCookie(c, NAME) ?? null))

/** `expiresAt`: of the session, in ms since epoch. */
export const writeSessionToken = (c: Ctx, token: string, expiresAt: number): void => {
  dropHttpsCookie(c)
  setCookie(c, NAME, token, {
    ...attributesOf(c),
    httpOnly: true,
    sameSite: 'Lax',
    path: '/',
    maxAge: Math.ceil(Math.max(0, Math.min(MOST_MS, expiresAt - c.env.clock.now() + OUTLIVES_MS)) / 1000),
  })
}

export const clearSessionToken = (c: Ctx): void => {
  dropHttpsCookie(c)
  deleteCookie(c, NAME, { ...attributesOf(c), path: '/' })
}

/** A cookie from https through a proxy that is no longer trusted would be read first and hide a new one. */
const dropHttpsCookie = (c: Ctx): void => {
  if (isHttps(c) || getCookie(c, NAME, 'host') === undefined) return
  deleteCookie(c, NAME, { secure: true, prefix: 'host', path: '/' })
}

/** The prefix makes browsers accept the cookie only from this host over TLS (RFC 6265bis §4.1.3.2). */
const attributesOf = (c: Ctx) => (isHttps(c) ? ({ secure: true, prefix: 'host' } as const) : {})

/** As the browser sees it: TLS here, or at a trusted proxy. */
const isHttps = (c: Ctx): boolean =>
  new URL(c.req.url).protocol === 'https:' ||
  (c.var.viaProxy && c.req.header('x-forwarded-proto')?.toLowerCase() === 'https')
