/** Which of the two apps handles a request, and what happens if only one is available. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { $ } from 'bun'
import { routeTable } from '../src/http/route-table.ts'
import { isForGateway } from '../src/routes/app.ts'
import { dashboard } from '../src/routes/dashboard.ts'
import { gateway } from '../src/routes/gateway.ts'
import { testApp } from './support/app.ts'

const ROOT = join(import.meta.dir, '..')

const concrete = (path: string): string => path.replace(/:\w+(\{[^}]*\}+)?/g, 'rtc_x')
const getPaths = (app: typeof gateway) => [...new Set(routeTable(app).map(({ path }) => concrete(path)))]

test('each route gets its requests, with a Host header and without', () => {
  const strays = (paths: string[], home: boolean) =>
    paths.flatMap((path) =>
      [`http://localhost:2455${path}`, `https://sluice.example${path}?x=/v1/models`, path, `${path}?a=1`].filter(
        (url) => isForGateway(url) !== home,
      ),
    )
  expect(strays(getPaths(gateway), true)).toEqual([])
  expect(strays(getPaths(dashboard), false)).toEqual([])
})

test.each([
  ['an unknown path under a gateway prefix', 'http://h/v1/nothing', true],
  ['a longer word', 'http://h/v10/models', false],
  ['a longer probe', 'http://h/health/live/x', false],
  ['a Host with a path in it', 'http://x/y@z/v1/models', false],
  ['a Host with a query in it', 'http://x?/v1/models', false],
  ['percent-encoded letters', 'http://h/%76%31/models', false],
  ['nothing', '', false],
])('%s', (_, url, isGateway) => {
  expect(isForGateway(url)).toBe(isGateway)
})

test.each(['leaving', 'handedOver'] as const)(
  '%s: also an answer that was already being prepared closes its connection',
  async (state) => {
    const app = await testApp()
    const ask = () => app.ask('POST /v1/responses', { json: { model: 'gpt-5.5', input: 'Hi' } })
    const before = await ask()
    expect([before.status, before.headers.get('connection')]).toEqual([200, null])
    app.wire.before = async () => {
      app.bindings.lifecycle[state] = true
    }
    const answer = await ask()
    expect([answer.status, answer.headers.get('connection')]).toEqual([200, 'close'])
  },
)

test('a dashboard that cannot be loaded is reported in the response and the log, each time', async () => {
  const script = `
    Bun.plugin({ name: 'broken', setup: (build) => void build.onLoad({ filter: /routes.dashboard.ts$/ }, () => {
      throw new Error('no such page')
    }) })
    const { answer } = await import('${join(ROOT, 'src/routes/app.ts')}')
    const logged = []
    const env = { lifecycle: {}, log: { error: (text, { err }) => logged.push(text + ': ' + err.message) } }
    const ask = async () => {
      const response = await answer(new Request('http://localhost:2455/dashboard'), env)
      return [response.status, response.headers.get('cache-control'), await response.json()]
    }
    console.log(JSON.stringify({ answers: [await ask(), await ask()], logged }))`
  const told = JSON.parse(await $`${process.execPath} -e ${script}`.text())
  const error = { code: 'internal_error', message: 'The dashboard could not be loaded; the log says why.' }
  const text = 'the dashboard could not be loaded; restart Sluice: no such page'
  expect(told.answers).toEqual([
    [500, 'no-store', { error }],
    [500, 'no-store', { error }],
  ])
  expect(told.logged).toEqual([text, text])
})
