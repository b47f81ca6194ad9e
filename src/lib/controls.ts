/** Characters that act instead of being read: they break a line, drive a terminal or turn the order of what follows round. */

const ACTING = /[\p{Cc}\p{Bidi_C}\u2028\u2029]/gu

/** Whether `text` holds such a character, or half of one. */
export const isPrintable = (text: string): boolean => text.isWellFormed() && text.search(ACTING) < 0

export const withoutControls = (text: string): string => text.replace(ACTING, '')

/** As JSON writes them, also where JSON would leave them as they are. */
export const escapeControls = (text: string): string =>
  text.replace(ACTING, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
