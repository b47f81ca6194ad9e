/** The size of pages: at most 40 KB of HTML, and 60 KB on the wire for the first page with everything it loads. */
import { expect, test } from 'bun:test'
import { buildDashboard, openPage, PAGE_PATHS, sharedHouse } from '../support/house.ts'

const MAX_HTML = 40 * 1024
const MAX_FIRST = 60 * 1024

/** Long texts that are read, not used: compressed they keep to these limits. The API reference grows with the routes. */
const TEXTS: Readonly<Record<string, number>> = { '/docs/api': 60 * 1024, '/docs/:guide': MAX_HTML }

const rows: [path: string, bytes: number, gzipped: number][] = []

/** The page with most settings. */
const MAX_ROUTING = 48 * 1024

test.each(PAGE_PATHS)('%s stays within its limit', async (path) => {
  const html = await openPage(await sharedHouse(), path)
  const gzipped = Bun.gzipSync(html).length
  rows.push([path, Buffer.byteLength(html), gzipped])
  expect(TEXTS[path] ? gzipped : Buffer.byteLength(html)).toBeLessThan(
    TEXTS[path] ?? (path === '/settings/routing' ? MAX_ROUTING : MAX_HTML),
  )
})

test.each(['/login', '/dashboard'])('%s with styles and scripts is at most 60 KB', async (path) => {
  const house = await buildDashboard()
  const response = await (path === '/login' ? house.stranger : house.admin).ask(`GET ${path}`, {
    headers: { accept: 'text/html' },
  })
  const html = await response.text()
  const assets = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, href]) => href ?? '')
  expect(assets.length).toBe(4)
  let total = Bun.gzipSync(html).length
  for (const asset of assets) total += Bun.gzipSync(await (await house.admin.ask(`GET ${asset}`)).text()).length
  rows.push([`${path} and what it loads`, 0, total])
  expect(total).toBeLessThan(MAX_FIRST)
})

test('every page was measured; PAGE_WEIGHTS=1 prints the table', () => {
  if (process.env.PAGE_WEIGHTS) console.table(rows.map(([page, html, gzipped]) => ({ page, html, gzipped })))
  expect(rows.length).toBe(PAGE_PATHS.length + 2)
})
