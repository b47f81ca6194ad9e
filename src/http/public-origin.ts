/** Under which origin people reach this service: for links that are sent away, and for passkeys, which belong to a name. */
import type { Ctx } from '../bindings.ts'
import { forwardedOrigin } from './cross-site.ts'

const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/**
 * What is configured, else what a trusted proxy says, else this machine's own name. null: only the Host header tells, and
 * anybody can write that (decisions §1 `PUBLIC_URL`).
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

/** For a link that an administrator sends: where nothing better is known, the address they have opened the dashboard under. */
export const originForLinks = (c: Ctx): string => (publicOrigin(c) ?? new URL(c.req.url)).origin
