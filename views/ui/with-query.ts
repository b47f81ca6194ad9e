/** URLs with a query. */

/** `path` with the non-empty `values`. */
export const withQuery = (
  path: string,
  values: Readonly<Record<string, string | number | null | undefined>>,
): string => {
  const said = Object.entries(values).flatMap(([name, value]) =>
    value === null || value === undefined || value === '' ? [] : [[name, String(value)]],
  )
  return said.length === 0 ? path : `${path}?${new URLSearchParams(said)}`
}
