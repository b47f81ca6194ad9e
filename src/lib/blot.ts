/** Removes a secret from text of others: servers repeat keys in their errors. */

export const BLOT = '***'
/** Shorter ones would blot out ordinary letters. */
const SHORTEST = 4

/** `text` without `secret`, also as it is written in URLs, in JSON, in HTML and in base64. */
export const blotOut = (text: string, secret: string | null): string => {
  return spellings(secret).reduce((clean, spelling) => clean.replaceAll(spelling, BLOT), text)
}

/** Longest first: one can be part of another. Empty: there is nothing to remove. */
export const spellings = (secret: string | null): string[] => {
  if (secret === null || secret.length < SHORTEST) return []
  const base64 = Buffer.from(secret).toString('base64')
  const all = [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    Bun.escapeHTML(secret),
    base64,
    base64.replace(/=+$/, ''),
    Buffer.from(secret).toString('base64url'),
  ]
  return [...new Set(all)].toSorted((a, b) => b.length - a.length)
}
