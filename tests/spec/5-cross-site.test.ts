/** Spec §5, cross-site request protection, over every state-changing route of the dashboard. */
import { describe, expect, test } from 'bun:test'
import { everyRoute } from '../../src/routes/every-route.ts'
import { type Ask, testApp } from '../support/app.ts'
import { dashboardProblem } from './problems.ts'

const OWN = 'http://localhost:2455'
const FOREIGN = 'https://evil.example'
const REJECTED = 'cross_site_request_rejected'
const UNSAFE = ['POST', 'PUT', 'PATCH', 'DELETE']

const rows = everyRoute.filter(({ method, path }) => path.startsWith('/api/') && UNSAFE.includes(method))
const isBearerRoute = (path: string) => path.startsWith('/api/fleet/') || path.startsWith('/api/codex/')
const covered = rows.filter(({ path }) => !isBearerRoute(path))

const { ask } = await testApp({ accounts: 0 })
const post = (headers: Record<string, string>, more: Ask = {}) =>
  ask('PATCH /api/settings', { json: {}, ...more, headers: { ...more.headers, ...headers } })
const getCode = async (response: Response) => (response.status === 403 ? (await dashboardProblem(response)).code : null)

describe('§5 cross-site 1: every POST, PUT, PATCH and DELETE under /api/ is checked', () => {
  test('the list has routes with each of the methods', () => {
    expect([...new Set(covered.map(({ method }) => method))].toSorted()).toEqual(UNSAFE.toSorted())
  })

  for (const { method, path } of covered)
    test(`${method} ${path}`, async () => {
      const foreign: Record<string, string>[] = [
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
        { origin: FOREIGN },
        { origin: `http://localhost:2455, ${FOREIGN}` },
      ]
      for (const headers of foreign) {
        const response = await ask(`${method} ${path.replaceAll(/:\w+/g, 'x')}`, { json: {}, headers })
        expect([response.status, await getCode(response)]).toEqual([403, REJECTED])
      }
    })

  test('forms are checked like JSON', async () => {
    const form = { body: new URLSearchParams({ capacityWaitSeconds: '1' }), json: undefined }
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'cross-site' }
    expect(await getCode(await post(headers, form))).toBe(REJECTED)
  })

  test('reading is not', async () => {
    const response = await ask('GET /api/settings', { headers: { 'sec-fetch-site': 'cross-site', origin: FOREIGN } })
    expect(response.status).toBe(200)
  })
})

describe('§5 cross-site 2: cross-site, or another scheme, host or port', () => {
  test.each([
    ['cross-site', { 'sec-fetch-site': 'cross-site' }],
    ['same-site is not the same origin', { 'sec-fetch-site': 'same-site' }],
    ['another scheme', { origin: 'https://localhost:2455' }],
    ['another host', { origin: 'http://127.0.0.1:2455' }],
    ['another port', { origin: 'http://localhost:2456' }],
    ['an opaque origin', { origin: 'null' }],
    ['two origins', { origin: `${OWN}, ${OWN}` }],
  ] as [string, Record<string, string>][])('%s is rejected', async (_name, headers) => {
    expect(await getCode(await post(headers))).toBe(REJECTED)
  })

  test.each([
    ['same-origin', { 'sec-fetch-site': 'same-origin', origin: OWN }],
    ['typed by the user', { 'sec-fetch-site': 'none' }],
    ['own origin alone', { origin: OWN }],
    ['own origin, written differently', { origin: 'HTTP://LOCALHOST:2455' }],
  ] as [string, Record<string, string>][])('%s passes', async (_name, headers) => {
    expect((await post(headers)).status).toBe(200)
  })

  test('nothing was changed by a rejected request', async () => {
    await ask('PATCH /api/settings', { json: { capacityWaitSeconds: 42 }, headers: { origin: FOREIGN } })
    expect(await (await ask('GET /api/settings')).json()).toMatchObject({ capacityWaitSeconds: 5 })
  })
})

describe('§5 cross-site 3: with neither header', () => {
  test('a request passes: it is no browser', async () => {
    expect((await post({})).status).toBe(200)
  })
})

describe('§5 cross-site 4: exempt are bearer-authenticated routes', () => {
  test.each(rows.filter(({ path }) => isBearerRoute(path)).map(({ method, path }) => [method, path]))(
    '%s %s answers about the key, not about the site',
    async (method, path) => {
      const response = await ask(`${method} ${path}`, { json: {}, headers: { origin: FOREIGN } })
      expect(response.status).toBe(401)
      expect((await dashboardProblem(response)).code).toBe('invalid_api_key')
    },
  )

  test('and any request with Authorization: Bearer', async () => {
    expect((await post({ origin: FOREIGN, authorization: 'Bearer token' })).status).toBe(200)
    expect(await getCode(await post({ origin: FOREIGN, authorization: 'Bearer ' }))).toBe(REJECTED)
    expect(await getCode(await post({ origin: FOREIGN, authorization: 'Basic dXNlcjpwYXNz' }))).toBe(REJECTED)
  })
})

describe('§5 cross-site 5: a reverse proxy must forward the Host with its port', () => {
  test('without the port the browser looks foreign, and the error says what to repair', async () => {
    const response = await post({ host: 'localhost', origin: OWN })
    expect(response.status).toBe(403)
    const { code, message, details } = await dashboardProblem(response)
    expect(code).toBe(REJECTED)
    expect(message).toContain('Host')
    expect(details).toEqual({ host: 'localhost', origin: OWN, secFetchSite: null })
  })
})
