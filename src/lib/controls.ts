/** Control characters: they break lines, drive a terminal or reverse the text direction. */

const ACTING = /[\p{Cc}\p{Bidi_C}\u2028\u2029]/gu

/** Whether `text` has no such character and no lone surrogate. */
export const isPrintable = (text: string): boolean => text.isWellFormed() && text.search(ACTING) < 0

export const withoutControls = (text: string): string => text.replace(ACTING, '')

/** Escaped as in JSON, including those JSON would keep. */
export const escapeControls = (text: string): string =>
  text.replace(ACTING, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
