/** The origin under which users reach Sluice, for links and for passkeys, which belong to a host name. */
import type { Ctx } from '../boot/bindings.ts'
import { forwardedOrigin } from './cross-site.ts'

const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/**
 * The configured origin, or a trusted proxy's, or this machine's own name. Null when only the Host header is known,
 * which anyone can write (decisions §1 `PUBLIC_URL`).
 */
export const publicOrigin = (c: Ctx): URL | null => {
  const { PUBLIC_URL } = c.env.env
  if (PUBLIC_URL) return new URL(new URL(PUBLIC_URL).origin)
  const url = new URL(c.req.url)
  const [forwarded] = forwardedOrigin(c, url.host)
  if (forwarded !== undefined) return URL.parse(forwarded)
  const isRelayed = c.req.header('x-forwarded-host') !== undefined
  return LOOPBACK_NAMES.includes(url.hostname) && !isRelayed ? new URL(url.origin) : null
}

/** For links that an administrator sends: falls back to the address they opened the dashboard under. */
export const originForLinks = (c: Ctx): string => (publicOrigin(c) ?? new URL(c.req.url)).origin
