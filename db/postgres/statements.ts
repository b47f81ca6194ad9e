/** Converts statements written for SQLite to PostgreSQL. Their meaning stays the same. */

/** Matches what stays the same (text and quoted names) and what is rewritten. */
const PARTS =
  /'(?:[^']|'')*'|(?<=\bon conflict \()[^)]*|"(?:[^"]|"")*"|\?|\$[a-z]\w*|\blike\b|(?<=\bvalues |\), )\(null\b/gi

/** The PostgreSQL text, and the names of its parameters in the order of their numbers. */
interface Translated {
  text: string
  names: string[]
}

/**
 * Numbers the placeholders: each `?` gets a new number, and a named one like `$limitId` has the same number everywhere.
 * drizzle names the table in a conflict target, which PostgreSQL does not allow, and inserts NULL for ids that the
 * database assigns. LIKE ignores the case of ASCII letters in SQLite, as ILIKE does for our columns.
 */
export const toPostgres = (statement: string): string => toPostgresNamed(statement).text

export function toPostgresNamed(statement: string): Translated {
  const placeholders: string[] = []
  const text = statement.replace(PARTS, (part) => {
    if (part === '?') return `$${placeholders.push(part)}`
    if (part.startsWith('$')) {
      const known = placeholders.indexOf(part)
      return `$${known === -1 ? placeholders.push(part) : known + 1}`
    }
    if (/^like$/i.test(part)) return 'ILIKE'
    if (/^\(null$/i.test(part)) return '(DEFAULT'
    return part.startsWith("'") ? part : part.replace(/"\w+"\./g, '')
  })
  return { text, names: placeholders.map((placeholder) => placeholder.slice(1)) }
}
