/** Links from the report to itself with a changed query. */

type Params = readonly (readonly [name: string, value: string])[]

/** null removes a parameter. */
export const hrefWith = (params: Params, changes: Readonly<Record<string, string | null>>): string => {
  const kept = params.filter(([name]) => !(name in changes)).map(([name, value]) => [name, value])
  const added = Object.entries(changes).flatMap(([name, value]) => (value === null ? [] : [[name, value]]))
  const query = new URLSearchParams([...kept, ...added]).toString()
  return query === '' ? '/reports' : `/reports?${query}`
}
