/** Numbers of things, as commands tell them. */

/** "1 key", "2 keys". */
export const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`
