/**
 * The host name for passkeys, or why they are unavailable: browsers require a name instead of an address, and https
 * except on this machine.
 */
import type { RelyingParty } from '../../auth/webauthn.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { publicOrigin } from '../../http/public-origin.ts'
import { normaliseIp } from '../../lib/cidr.ts'

interface PasskeySupport {
  rp: RelyingParty | null
  /** null: passkeys work here. */
  reason: string | null
  /** A local address where they work. */
  link: string | null
}

const NO_ORIGIN = 'To use passkeys, set SLUICE_PUBLIC_URL to the address of the dashboard.'
const NO_NAME =
  'Passkeys need a host name; they do not work with an IP address. On the server itself, open the dashboard at localhost. ' +
  'From elsewhere, use a host name with https.'
const NO_TLS = 'Browsers allow passkeys only over https.'

/** Whether passkeys work at the address of this request. */
export const passkeySupport = (c: Ctx): PasskeySupport => {
  const asked = new URL(c.req.url)
  const origin = publicOrigin(c)
  if (isAddress((origin ?? asked).hostname))
    return { rp: null, reason: NO_NAME, link: `http://localhost:${asked.port || c.env.env.PORT}` }
  if (origin === null) return { rp: null, reason: NO_ORIGIN, link: null }
  if (origin.protocol !== 'https:' && !/^(.+\.)?localhost$/.test(origin.hostname))
    return { rp: null, reason: NO_TLS, link: null }
  return { rp: { id: origin.hostname, origin: origin.origin }, reason: null, link: null }
}

/** Throws `passkeys_unavailable` with the reason. */
export const requireRelyingParty = (c: Ctx): RelyingParty => {
  const { rp, reason, link } = passkeySupport(c)
  if (rp) return rp
  throw new AppError('passkeys_unavailable', {
    message: reason ?? undefined,
    ...(link !== null && { details: { link } }),
  })
}

const isAddress = (hostname: string): boolean => normaliseIp(hostname.replace(/^\[|\]$/g, '')) !== null
