/** `/docs/api` and `/api/openapi.json`: who can read them, and the content of the page. */
import { describe, expect, test } from 'bun:test'
import { openApi } from '../../src/api-docs/openapi.ts'
import { getOperations } from '../../src/api-docs/operations.ts'
import { everyRoute } from '../../src/routes/every-route.ts'
import { testApp } from '../support/app.ts'
import { type Browser, people, REMOTE } from '../support/people.ts'

const HTML = { accept: 'text/html' }
const operations = getOperations(everyRoute)

const open = async (environment: Record<string, string> = {}, guestAccessEnabled = true) => {
  const app = await testApp({ settings: { guestAccessEnabled }, environment })
  return { app, ...people(app) }
}

/** The visible text of one operation. */
const readOperation = async (who: Browser, id: string, path = '/docs/api') => {
  const response = await who.ask(`GET ${path}`, { headers: HTML })
  const text: string[] = []
  let isInside = false
  const rewriter = new HTMLRewriter()
    .on(`div#${id}`, {
      element: (element) => {
        isInside = true
        element.onEndTag(() => {
          isInside = false
        })
      },
    })
    .on('*', { text: (chunk) => void (isInside && text.push(chunk.text)) })
  await rewriter.transform(response).text()
  return text
    .join('')
    .replaceAll(/\s+/g, ' ')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

/** The ids of the operations that are not hidden. */
const shownIds = async (who: Browser, path: string): Promise<string[]> => {
  const response = await who.ask(`GET ${path}`, { headers: HTML })
  const ids: string[] = []
  let isShown = false
  await new HTMLRewriter()
    .on('details.docs-op', {
      element: (element) => {
        isShown = !element.hasAttribute('hidden')
      },
    })
    .on('details.docs-op > div', {
      element: (element) => void (isShown && ids.push(element.getAttribute('id') ?? '')),
    })
    .transform(response)
    .text()
  return ids
}

describe('permissions for the API reference', () => {
  test('other machines have no access; a browser is sent to sign in', async () => {
    const { add, browser } = await open({}, false)
    await add({ role: 'admin' })
    const stranger = browser(REMOTE)
    expect((await stranger.ask('GET /api/openapi.json')).status).toBe(401)
    const page = await stranger.ask('GET /docs/api', { headers: HTML })
    expect([page.status, page.headers.get('location')]).toEqual([303, '/login?return=%2Fdocs%2Fapi'])
  })

  test('everyone with access, guests included, gets the same document', async () => {
    const { as, guest } = await open()
    const documents = await Promise.all(
      [await as('admin'), await as('viewer'), await as('member'), await guest()].map(async (who) =>
        (await who.ask('GET /api/openapi.json')).text(),
      ),
    )
    const [first = ''] = documents
    expect(documents.every((one) => one === first)).toBe(true)
    expect(JSON.parse(first)).toEqual(JSON.parse(JSON.stringify(openApi(operations))))
    for (const who of [await as('member'), await guest()])
      expect((await who.ask('GET /docs/api', { headers: HTML })).status).toBe(200)
  })

  test('the document is sent compressed to clients that accept it', async () => {
    const { as } = await open()
    const who = await as('viewer')
    const plain = await who.ask('GET /api/openapi.json')
    const packed = await who.ask('GET /api/openapi.json', { headers: { 'accept-encoding': 'gzip' } })
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect(packed.headers.get('content-encoding')).toBe('gzip')
    expect(packed.headers.get('vary')).toContain('Accept-Encoding')
    const unpacked = new TextDecoder().decode(Bun.gunzipSync(await packed.bytes()))
    expect(unpacked === (await plain.text())).toBe(true)
  })
})

describe('the page', () => {
  test('lists every implemented route once, and no other', async () => {
    const { as } = await open()
    const html = await (await (await as('viewer')).ask('GET /docs/api', { headers: HTML })).text()
    const ids = await shownIds(await as('viewer'), '/docs/api')
    const wanted = operations.filter(({ aliasOf, isPlanned }) => aliasOf === null && !isPlanned)
    expect(ids.toSorted()).toEqual(wanted.map(({ id }) => id).toSorted())
    const built = new Set(operations.filter(({ isPlanned }) => !isPlanned).map(({ path }) => path))
    expect([...built].filter((path) => !html.includes(path))).toEqual([])
    const planned = operations.filter(({ isPlanned, path }) => isPlanned && !built.has(path))
    expect(planned.filter(({ path }) => html.includes(`<code>${path}</code>`))).toEqual([])
    expect(html).not.toContain('not built')
    expect(['undefined', '[object', 'NaN'].filter((word) => html.includes(word))).toEqual([])
  })

  test('shows permissions, request, response, errors and an example', async () => {
    const { as } = await open()
    const text = await readOperation(await as('viewer'), 'postApiFirewallIps')
    for (const part of [
      'Users with security:write, confirmed within five minutes.',
      'ipAddress required',
      'An address, or a range in CIDR form.',
      'The entry in canonical form.',
      'firewall_entry_added',
      '409 ip_exists',
      'without a confirmation',
      `-d '{"ipAddress":"192.0.2.0/24"}'`,
      'http://localhost:2455/api/firewall/ips',
    ])
      expect(text).toContain(part)
  })

  test('shows nested fields, defaults and choices', async () => {
    const { as } = await open()
    const key = await readOperation(await as('viewer'), 'postApiApiKeysSlash')
    expect(key).toContain('limits[].limitType required')
    expect(key).toContain('"requests" | "total_tokens"')
    expect(key).toContain('Also POST /api/api-keys')
    const log = await readOperation(await as('viewer'), 'getApiRequestLogs')
    expect(log).toContain('integer 1…1000, default 50')
    const settings = await readOperation(await as('viewer'), 'patchApiSettings')
    expect(settings).toContain('where a security setting changes, users with security:write')
    expect(settings).toContain('Default: 8 seconds.')
  })

  test('searches by path, field, permission and error without scripts, and opens a few results', async () => {
    const { as } = await open()
    const who = await as('viewer')
    expect(await shownIds(who, '/docs/api?q=ips%20security:write')).toEqual([
      'postApiFirewallIps',
      'deleteApiFirewallIpsIp',
    ])
    expect(await shownIds(who, '/docs/api?q=redeemRequestId')).toHaveLength(1)
    expect(await shownIds(who, '/docs/api?q=last_admin_protected')).toEqual([
      'patchApiDashboardUsersId',
      'deleteApiDashboardUsersId',
    ])
    const html = await (await who.ask('GET /docs/api?q=last_admin_protected', { headers: HTML })).text()
    expect(html.match(/<details class="docs-op" open/g)).toHaveLength(2)
    const nothing = await (await who.ask('GET /docs/api?q=%3Cb%3Enothing', { headers: HTML })).text()
    expect(nothing).toContain('0 of')
    expect(nothing).not.toContain('<b>nothing')
  })

  test('the examples use the address of this request, regardless of earlier ones', async () => {
    const { as } = await open()
    const who = await as('viewer')
    const local = await (await who.ask('GET /docs/api', { headers: HTML })).text()
    expect(local).toContain('http://localhost:2455/health')
    expect(local).not.toContain('data-guess')
    const elsewhere = await (await who.ask('GET /docs/api', { headers: { ...HTML, host: 'box.lan:8080' } })).text()
    expect(elsewhere).toContain('http://box.lan:8080/health')
    expect(elsewhere).not.toContain('localhost:2455/')
    expect(elsewhere).toContain('data-guess="http://box.lan:8080"')
    const named = await open({ CODEX_LB_PUBLIC_URL: 'https://sluice.example' })
    const configured = await (await (await named.as('viewer')).ask('GET /docs/api', { headers: HTML })).text()
    expect(configured).toContain('https://sluice.example/health')
    expect(configured).not.toContain('data-guess')
  })

  test('stays small enough to open on a phone', async () => {
    const { as } = await open()
    const html = await (await (await as('viewer')).ask('GET /docs/api', { headers: HTML })).text()
    expect(html.length).toBeLessThan(570_000)
    expect(Bun.gzipSync(html).length).toBeLessThan(60_000)
  })

  test('is linked from Settings, About', async () => {
    const { as } = await open()
    expect(await (await (await as('viewer')).ask('GET /settings/about', { headers: HTML })).text()).toContain(
      'href="/docs"',
    )
  })
})
