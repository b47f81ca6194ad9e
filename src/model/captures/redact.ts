/** Removes credentials from headers and queries before they are captured. */

export const REMOVED = '[removed]'

/** By name: credentials of clients, proxies and clouds, and what browsers and gateways add. */
const SECRET_NAME =
  /auth|token|secret|cookie|passw|credential|api[-_]?key|^key$|[-_]key\b|jwt|assertion|attestation|signature|session[-_]?key|remote-user/i
/** By value: a key of OpenAI's form, a bearer token, a JWT, a key in a WebSocket subprotocol. */
const SECRET_VALUE = /\bsk-[\w-]{6,}|\b(?:bearer|basic|digest|negotiate)\s+\S|\beyJ[\w-]{8,}\.|api-key\./i
/** Query members that carry credentials or tie a request to a call. */
const SECRET_MEMBER = /^(key|token|authorization|api_key|access_token|sig|signature|code|call_id)$/i
/** Shorter ones are too likely to occur by chance. */
const MIN_KEY_CHARS = 6

/** Name and value of each header, as the client or ChatGPT sent it, without credentials. */
export const redactedHeaders = (headers: Headers): [name: string, value: string][] => {
  const presented = /^\s*\S+\s+(\S+)\s*$/.exec(headers.get('authorization') ?? '')?.[1] ?? ''
  const isPresented = (value: string) => presented.length >= MIN_KEY_CHARS && value.includes(presented)
  return [...headers].map(([name, value]) => [
    name,
    SECRET_NAME.test(name) || SECRET_VALUE.test(value) || isPresented(value) ? REMOVED : value,
  ])
}

/** A path with its query. */
export const redactedTarget = (target: string): string => {
  const at = target.indexOf('?')
  if (at === -1) return target
  const members = target.slice(at + 1).split('&')
  const shown = members.map((member) => {
    const [name = '', value] = member.split('=', 2)
    if (value === undefined) return member
    // Decoded, so that an escaped letter hides neither the name nor the value.
    const [[plainName = '', plainValue = ''] = []] = new URLSearchParams(member)
    const isSecret =
      [SECRET_MEMBER, SECRET_NAME].some((names) => names.test(plainName)) || SECRET_VALUE.test(plainValue)
    return isSecret ? `${name}=${REMOVED}` : member
  })
  return `${target.slice(0, at)}?${shown.join('&')}`
}
