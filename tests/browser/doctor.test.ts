/** The doctor's page in a browser: it fits, it reads, and it measures streaming and sockets through whatever stands between. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { type RunningServer, runCommand, spawnServer } from '../support/spawn.ts'
import { DESKTOP, launchBrowser, overflows, PHONE, screenshot, type TestBrowser, textOf } from './browser.ts'

let browser: TestBrowser
let server: RunningServer

const nowhere = 'http://127.0.0.1:1'

beforeAll(async () => {
  const env = { CODEX_LB_UPSTREAM_BASE_URL: nowhere, CODEX_LB_AUTH_BASE_URL: nowhere }
  ;[browser, server] = await Promise.all([launchBrowser(), spawnServer({ env })])
  await runCommand(['backup'], { env: server.env })
}, 30_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
})

const findingOf = (page: Page, title: string) =>
  page.locator('.finding', { has: page.getByRole('heading', { name: title, exact: true }) })

const LOOKS = [
  { name: 'desk-light', viewport: DESKTOP, colorScheme: 'light' },
  { name: 'desk-dark', viewport: DESKTOP, colorScheme: 'dark' },
  { name: 'phone-light', viewport: PHONE, colorScheme: 'light' },
  { name: 'phone-dark', viewport: PHONE, colorScheme: 'dark' },
] as const

describe.each(LOOKS)('$name', ({ name, ...options }) => {
  test('streaming and sockets are measured, and what is wrong says what to do', async () => {
    await using visit = await browser.visit(`${server.url}/doctor`, options)
    const row = (title: string) => textOf(findingOf(visit.page, title))
    await visit.page.waitForFunction(
      () => document.querySelectorAll('[data-outcome="running"]:not([hidden])').length === 0,
    )
    expect(await row('Streaming')).toContain('one by one')
    expect(await row('WebSockets')).toContain('came back')
    expect(await row('Upstream over HTTP')).toContain('cannot be reached')
    expect(await textOf(visit.page.locator('.health'))).toContain('Something is wrong')
    expect(visit.problems).toEqual([])
    expect(await overflows(visit.page)).toEqual([])
    await screenshot(visit.page, `doctor-${name}`)
  })
})

test('behind a proxy that buffers and knows no upgrades, it says so', async () => {
  const proxy = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async (request) => {
      const { pathname } = new URL(request.url)
      const headers = new Headers(request.headers)
      for (const name of ['upgrade', 'connection']) headers.delete(name)
      const answer = await fetch(server.url + pathname, { headers, decompress: false })
      return new Response(await answer.arrayBuffer(), { status: answer.status, headers: answer.headers })
    },
  })
  try {
    await using visit = await browser.visit(`http://127.0.0.1:${proxy.port}/doctor`)
    await visit.page.waitForFunction(
      () => document.querySelectorAll('[data-outcome="running"]:not([hidden])').length === 0,
    )
    expect(await textOf(findingOf(visit.page, 'Streaming'))).toContain('buffers')
    expect(await textOf(findingOf(visit.page, 'WebSockets'))).toContain('No socket could be opened')
  } finally {
    await proxy.stop(true)
  }
}, 20_000)
