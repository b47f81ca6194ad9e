/** What a reverse proxy calls somebody, in the one spelling that is compared and kept. */

/**
 * In lower case, but for the signs of Kelvin, ångström and ohm and the symbol of theta: their lower case is that of a letter, which
 * would make a name of other letters the one of somebody else.
 */
export const subjectText = (name: string): string =>
  name.replace(/[^\u03f4\u2126\u212a\u212b]+/g, (part) => part.toLowerCase())
