/** The fields an edit really changes: a form sends all fields. */

/** Members of `patch` that differ from `before`. */
export const getChanges = <P extends object>(before: { [Name in keyof P]?: unknown }, patch: P): Partial<P> => {
  const differs = ([name, to]: [string, unknown]): boolean =>
    to !== undefined && !Bun.deepEquals(to, before[name as keyof P]) // as: entries lose the names' types
  return Object.fromEntries(Object.entries(patch).filter(differs)) as Partial<P> // as: the same
}
