/** The addresses of the account pages: every view, filter and tab has one, and what is the default is left out of it. */

export const accountPath = (accountId: string): string => `/accounts/${encodeURIComponent(accountId)}`

/** `path` with those of `values` that say something. */
export const withQuery = (
  path: string,
  values: Readonly<Record<string, string | number | null | undefined>>,
): string => {
  const said = Object.entries(values).flatMap(([name, value]) =>
    value === null || value === undefined || value === '' ? [] : [[name, String(value)]],
  )
  return said.length === 0 ? path : `${path}?${new URLSearchParams(said)}`
}
