/** `docs/api.md`: its tables are those the code makes, and every route of the API is in one of them. */
import { expect, test } from 'bun:test'
import { API_DOCS, rendered } from '../../scripts/api-docs.ts'
import { getOperations } from '../../src/api-docs/operations.ts'
import { everyRoute } from '../../src/routes/every-route.ts'

const text = await Bun.file(API_DOCS).text()

test('the page is up to date; `bun run api-docs` makes it so', () => {
  const lines = rendered(text).split('\n')
  expect(text.split('\n').filter((line) => !lines.includes(line))).toEqual([])
  expect(rendered(text) === text).toBe(true)
})

test('every route that answers and is no page is in a table', () => {
  const missing = getOperations(everyRoute)
    .filter(({ isPlanned, isPage, path }) => !isPlanned && !isPage && !path.startsWith('/doctor/'))
    .filter(({ method, path }) => !text.includes(`\`${method} ${path}\``))
  expect(missing.map(({ method, path }) => `${method} ${path}`)).toEqual([])
})

test('a block about routes or fields that are not there is an error, and what is around blocks stays', () => {
  expect(() => rendered('<!-- routes /api/nothing -->\n<!-- end -->')).toThrow('No route begins with /api/nothing.')
  expect(() => rendered('<!-- fields GET /api/nothing -->\n<!-- end -->')).toThrow('There is no route')
  const page = 'Before.\n\n<!-- fields POST /api/firewall/ips -->\nold\n<!-- end -->\n\nAfter.\n'
  expect(rendered(page)).toBe(
    [
      'Before.\n',
      '<!-- fields POST /api/firewall/ips -->\n',
      '| Name | Values | Meaning |',
      '| --- | --- | --- |',
      '| `ipAddress`, required | `string ≤ 100` | An address, or a range in CIDR form. |\n',
      '<!-- end -->\n',
      'After.\n',
    ].join('\n'),
  )
  expect(rendered(rendered(page))).toBe(rendered(page))
})
