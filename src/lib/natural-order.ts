/** Compares names as people sort them: "team-2" before "team-10", upper and lower case alike. */
export const naturalOrder = (a: string, b: string): number => collator.compare(a, b)

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' })
