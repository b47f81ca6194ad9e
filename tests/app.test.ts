/** Which of the two apps a request goes to. */
import { expect, test } from 'bun:test'
import { isForGateway } from '../src/app.ts'
import { dashboard } from '../src/dashboard.ts'
import { gateway } from '../src/gateway.ts'
import { routeTable } from '../src/http/route-table.ts'

const concrete = (path: string): string => path.replace(/:\w+(\{[^}]*\}+)?/g, 'rtc_x')
const pathsOf = (app: typeof gateway) => [...new Set(routeTable(app).map(({ path }) => concrete(path)))]

test('each route is where its requests go, with a Host and without', () => {
  const strays = (paths: string[], home: boolean) =>
    paths.flatMap((path) =>
      [`http://localhost:2455${path}`, `https://sluice.example${path}?x=/v1/models`, path, `${path}?a=1`].filter(
        (url) => isForGateway(url) !== home,
      ),
    )
  expect(strays(pathsOf(gateway), true)).toEqual([])
  expect(strays(pathsOf(dashboard), false)).toEqual([])
})

test.each([
  ['a path of nobody under a prefix of the gateway', 'http://h/v1/nothing', true],
  ['a longer word', 'http://h/v10/models', false],
  ['a longer probe', 'http://h/health/live/x', false],
  ['a Host with a path in it', 'http://x/y@z/v1/models', false],
  ['a Host with a query in it', 'http://x?/v1/models', false],
  ['letters written as numbers', 'http://h/%76%31/models', false],
  ['nothing', '', false],
])('%s', (_, url, isGateway) => {
  expect(isForGateway(url)).toBe(isGateway)
})
