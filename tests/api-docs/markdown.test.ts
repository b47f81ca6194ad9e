/** `docs/api.md`: its tables match the code, and every API route is in one of them. */
import { expect, test } from 'bun:test'
import { API_DOCS, rendered } from '../../scripts/api-docs.ts'
import { getOperations } from '../../src/api-docs/operations.ts'
import { everyRoute } from '../../src/routes/every-route.ts'

const text = await Bun.file(API_DOCS).text()

test('the page is up to date (`bun run api-docs` updates it)', () => {
  const lines = rendered(text).split('\n')
  expect(text.split('\n').filter((line) => !lines.includes(line))).toEqual([])
  expect(rendered(text) === text).toBe(true)
})

test('every implemented route that is not a page is in a table', () => {
  const missing = getOperations(everyRoute)
    .filter(({ isPlanned, isPage, path }) => !isPlanned && !isPage && !path.startsWith('/doctor/'))
    .filter(({ method, path }) => !text.includes(`\`${method} ${path}\``))
  expect(missing.map(({ method, path }) => `${method} ${path}`)).toEqual([])
})

test('a block about unknown routes or fields is an error, and the text around blocks is kept', () => {
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
