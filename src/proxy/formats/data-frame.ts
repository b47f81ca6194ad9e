/** Writes the `data:` lines of chat streams, which have no event name; events with a `type` are written by `lib/sse.ts`. */

/**
 * One JSON value on one line. U+0085, U+2028 and U+2029 are escaped because some client libraries split lines there,
 * although the event stream format does not.
 */
export const jsonLine = (value: unknown): string =>
  JSON.stringify(value).replace(/[\u0085\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** A `data:` line and the blank line after it. */
export const dataFrame = (value: unknown): string => `data: ${jsonLine(value)}\n\n`
