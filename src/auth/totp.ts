/** Authenticator codes (RFC 6238): offers a secret and finds the time step of a code. */
import { Secret, TOTP } from 'otpauth'
import { renderSVG } from 'uqr'
import type { Random } from '../lib/random.ts'
import { TOTP_WINDOW } from '../model/users/passwords.ts'

const ISSUER = 'Sluice'
const SECRET_BYTES = 20
/** The defaults of authenticator apps, some of which ignore other values. */
const PARAMETERS = { algorithm: 'SHA1', digits: 6, period: 30 } as const

/** Base32, as made by `offerTotp`. */
export const TOTP_SECRET = /^[A-Z2-7]{32}$/

interface TotpOffer {
  secret: string
  otpauthUri: string
  /** For an `img`; the SVG itself is `qrSvg(otpauthUri)`. */
  qrSvgDataUri: string
}

/** A new secret for an authenticator. Stored only once a code confirms it. */
export const offerTotp = (random: Random, username: string): TotpOffer => {
  const secret = new Secret({ buffer: random.bytes(SECRET_BYTES).buffer })
  const otpauthUri = new TOTP({ ...PARAMETERS, issuer: ISSUER, label: username, secret }).toString()
  return {
    secret: secret.base32,
    otpauthUri,
    qrSvgDataUri: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(qrSvg(otpauthUri))}`,
  }
}

const qrSvg = (text: string): string => renderSVG(text, { ecc: 'M', border: 2 })

/** The time step of this code, counted from the epoch; null for a wrong code. Blanks are ignored. */
export const stepOfCode = (secret: string, code: string, now: number): number | null => {
  const token = code.replace(/\s/g, '')
  if (!/^\d{6}$/.test(token)) return null
  const delta = TOTP.validate({
    ...PARAMETERS,
    token,
    secret: Secret.fromBase32(secret),
    timestamp: now,
    window: TOTP_WINDOW,
  })
  return delta === null ? null : TOTP.counter({ period: PARAMETERS.period, timestamp: now }) + delta
}
