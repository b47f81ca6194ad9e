/** The canonical form of a user name from a reverse proxy. */

/**
 * Lower case, except for the Kelvin, ångström, ohm and theta symbols: their lower case equals a letter, so that
 * different names would become equal.
 */
export const normalizeSubject = (name: string): string =>
  name.replace(/[^\u03f4\u2126\u212a\u212b]+/g, (part) => part.toLowerCase())
