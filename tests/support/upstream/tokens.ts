/** Creates the ids and the unsigned but well-formed JWTs of the stand-in upstream. */

export const AUTH_CLAIM = 'https://api.openai.com/auth'

/** Gives a new id such as `resp_000000000000002a`; ids of one mint never repeat and are the same on every run. */
export type Mint = (prefix: string) => string

export function createMint(): Mint {
  let issued = 0
  return (prefix) => {
    issued += 1
    return `${prefix}_${issued.toString(16).padStart(16, '0')}`
  }
}

/** Three base64url parts that every JWT reader can decode; the signature cannot be verified and should not be. */
export function unsignedJwt(claims: Record<string, unknown>): string {
  return [{ alg: 'none', typ: 'JWT' }, claims, 'unsigned'].map(encodePart).join('.')
}

/** The claims of a token, for tests that look inside. */
export function decodeJwt(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
}

function encodePart(part: unknown): string {
  return Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url')
}
