/** What an edit really changes: a form carries every field, touched or not. */

/** Of `patch`, what `before` says otherwise; what is left out stays. */
export const changesOf = <P extends object>(before: { [Name in keyof P]?: unknown }, patch: P): Partial<P> => {
  const differs = ([name, to]: [string, unknown]): boolean =>
    to !== undefined && !Bun.deepEquals(to, before[name as keyof P]) // as: entries forget their names
  return Object.fromEntries(Object.entries(patch).filter(differs)) as Partial<P> // as: the same
}
