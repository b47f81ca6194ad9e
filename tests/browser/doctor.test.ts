/** The doctor page in a browser: layout, and its measurements behind different proxies. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { runInProcess } from '../support/cli.ts'
import { type RunningServer, spawnServer } from '../support/spawn.ts'
import { getText, launchBrowser, overflowsAt, type TestBrowser } from './browser.ts'
import { faultyProxy } from './faulty-proxy.ts'

let browser: TestBrowser
let server: RunningServer

const nowhere = 'http://127.0.0.1:1'

beforeAll(async () => {
  const env = { CODEX_LB_UPSTREAM_BASE_URL: nowhere, CODEX_LB_AUTH_BASE_URL: nowhere }
  ;[browser, server] = await Promise.all([launchBrowser(), spawnServer({ env })])
  await runInProcess(['backup'], { env: server.env })
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
})

const getFinding = (page: Page, title: string) =>
  page.locator('.finding', { has: page.getByRole('heading', { name: title, exact: true }) })

test('everything is measured, and problems say what to do', async () => {
  await using visit = await browser.visit(`${server.url}/doctor`)
  const row = (title: string) => getText(getFinding(visit.page, title))
  await untilMeasured(visit.page)
  expect(await row('Streaming')).toContain('one by one')
  expect(await row('WebSockets')).toContain('echoed a message')
  expect(await row('Large requests')).toContain('2 MB request arrived')
  expect(await row('Headers with underscores')).toContain('Headers with underscores arrive')
  expect(await row('Path /v1')).toContain('reach Sluice')
  expect(await row('Path /backend-api')).toContain('reach Sluice')
  expect(await row('ChatGPT over HTTP')).toContain('Can’t reach')
  expect(await getText(visit.page.locator('.health'))).toContain('Errors found')
  expect(visit.problems).toEqual([])
  expect(await overflowsAt(visit.page)).toEqual([])
})

test('behind a proxy that buffers and does not support upgrades, it says so', async () => {
  await using proxy = faultyProxy(server.url, { buffers: true })
  await using visit = await browser.visit(`${proxy.url}/doctor`)
  await untilMeasured(visit.page)
  expect(await getText(getFinding(visit.page, 'Streaming'))).toContain('buffers')
  expect(await getText(getFinding(visit.page, 'WebSockets'))).toContain('WebSockets are blocked')
}, 120_000)

test('a buffer that is flushed in between is detected, too', async () => {
  await using proxy = faultyProxy(server.url, { buffers: 500 })
  await using visit = await browser.visit(`${proxy.url}/doctor`)
  await untilMeasured(visit.page)
  expect(await getText(getFinding(visit.page, 'Streaming'))).toContain('buffers')
}, 120_000)

test('a page that was busy while the events arrived does not blame a proxy', async () => {
  await using visit = await browser.visit(`${server.url}/dashboard`)
  await visit.page.addInitScript(hangOnce, '/doctor/stream')
  await visit.page.goto(`${server.url}/doctor`)
  await untilMeasured(visit.page)
  expect(await visit.page.evaluate('hung')).toBe(true)
  expect(await getText(getFinding(visit.page, 'Streaming'))).toContain('one by one')
}, 120_000)

test('behind a proxy with a body limit, no underscores and only some paths, it says so', async () => {
  await using proxy = faultyProxy(server.url, {
    maxBytes: 1024 * 1024,
    dropsUnderscores: true,
    hides: ['/v1/', '/backend-api/'],
  })
  await using visit = await browser.visit(`${proxy.url}/doctor`)
  await untilMeasured(visit.page)
  const row = (title: string) => getText(getFinding(visit.page, title))
  expect(await row('Streaming')).toContain('one by one')
  expect(await row('Large requests')).toMatch(/Error.*rejected as too large.*client_max_body_size/s)
  expect(await row('Headers with underscores')).toMatch(/Warning.*session_id.*underscores_in_headers on/s)
  expect(await row('Path /v1')).toMatch(/Error.*don’t reach Sluice. Something else answered at \/v1\/models/s)
  expect(await row('Path /backend-api')).toMatch(/Error.*don’t reach Sluice. Something else answered/s)
}, 120_000)

test('each fault is distinguished from the others, and an upload that is cut off from one that is rejected', async () => {
  await using proxy = faultyProxy(server.url, { cutsUploads: true, guards: ['/backend-api/'] })
  await using visit = await browser.visit(`${proxy.url}/doctor`)
  await untilMeasured(visit.page)
  const row = (title: string) => getText(getFinding(visit.page, title))
  expect(await row('Large requests')).toContain('was cut off')
  expect(await row('Headers with underscores')).toContain('Headers with underscores arrive')
  expect(await row('Path /v1')).toContain('reach Sluice')
  expect(await row('Path /backend-api')).toContain('without a sign-in of its own')
  expect(visit.problems.filter((problem) => !problem.startsWith('WebSocket'))).toEqual([])
}, 120_000)

const untilMeasured = (page: Page) =>
  page.waitForFunction(() => document.querySelectorAll('[data-outcome="running"]:not([hidden])').length === 0)

/** Runs in the page: blocks for longer than the events take, once the first response of `path` has begun. */
const hangOnce = (path: string): void => {
  const { fetch } = globalThis
  const state = Object.assign(globalThis, { hung: false })
  const fetchAndHang = async (...args: Parameters<typeof fetch>): Promise<Response> => {
    const answer = await fetch(...args)
    if (args[0] !== path || state.hung) return answer
    state.hung = true
    for (const until = performance.now() + 1000; performance.now() < until; );
    return answer
  }
  globalThis.fetch = Object.assign(fetchAndHang, { preconnect: fetch.preconnect })
}
