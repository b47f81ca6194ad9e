/** Natural sorting: "team-2" before "team-10", ignoring case. */
export const naturalOrder = (a: string, b: string): number => collator.compare(a, b)

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' })
