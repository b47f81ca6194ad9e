/** Removes a secret from the text of other servers, which may repeat a key in their errors. */

export const REDACTED = '***'
/** Shorter ones would remove ordinary letters. */
const SHORTEST = 4

/** `text` without `secret`, also as it is written in URLs, in JSON, in HTML and in base64. */
export const redactSecret = (text: string, secret: string | null): string => {
  return spellings(secret).reduce((clean, spelling) => clean.replaceAll(spelling, REDACTED), text)
}

/** Longest first: one can be part of another. Empty: there is nothing to remove. */
export const spellings = (secret: string | null): string[] => {
  if (secret === null || secret.length < SHORTEST) return []
  const base64 = Buffer.from(secret).toString('base64')
  const all = [
    secret,
    ...inUrls(secret),
    ...inJson(secret),
    Bun.escapeHTML(secret),
    base64,
    base64.replace(/=+$/, ''),
    Buffer.from(secret).toString('base64url'),
  ]
  return [...new Set(all)].toSorted((a, b) => b.length - a.length)
}

const inUrls = (secret: string): string[] =>
  [encodeURIComponent(secret), new URLSearchParams({ '': secret }).toString().slice(1)].flatMap((encoded) => [
    encoded,
    encoded.replace(/%../g, (code) => code.toLowerCase()),
  ])

/** As common JSON writers escape it. */
const inJson = (secret: string): string[] => {
  const json = JSON.stringify(secret).slice(1, -1)
  const ascii = json.replace(NON_ASCII, (char) => `\\u${getCode(char)}`)
  return [
    json,
    ascii, // Python
    json.replaceAll('/', '\\/'),
    ascii.replaceAll('/', '\\/'), // PHP
    json.replace(/[&<>]/g, (char) => `\\u${getCode(char)}`), // Go
    json.replaceAll('\\"', '"').replace(DOTNET, (char) => `\\u${getCode(char).toUpperCase()}`),
  ]
}

const NON_ASCII = /[^\0-\x7f]/g
/** What System.Text.Json escapes as a code. */
const DOTNET = /["&'+<>`]|[^\0-\x7f]/g

const getCode = (char: string): string => char.charCodeAt(0).toString(16).padStart(4, '0')
