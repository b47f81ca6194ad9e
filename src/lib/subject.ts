/** What a reverse proxy calls somebody, in the one spelling that is compared and kept. */

/**
 * In lower case, but for the Kelvin sign: its lower case is the letter k, which would make a name of other letters the one of
 * somebody else.
 */
export const subjectText = (name: string): string => name.replace(/[^\u212a]+/g, (part) => part.toLowerCase())
