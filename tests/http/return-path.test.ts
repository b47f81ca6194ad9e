/** Redirects lead only to our own pages, whatever the link or the headers contain. */
import { expect, test } from 'bun:test'
import { open } from '../../src/http/gates.ts'
import { createHandlers } from '../../src/http/handlers.ts'
import { getPage, returnPath, withReturn } from '../../src/http/return-path.ts'
import { probe } from './probe.ts'

const told = createHandlers(open('test'), (c) => {
  const page = getPage(c)
  return c.json({ to: returnPath(c), page: page && page.pathname + page.search })
})
const { ask } = probe((app) => {
  app.get('/login', ...told)
  app.post('/api/login', ...told)
})

const target = async (path: string): Promise<string> => {
  const response = await ask(`GET /login?return=${encodeURIComponent(path)}`)
  return ((await response.json()) as { to: string }).to
}

test.each(['/settings', '/settings/access?done=user_updated#people', '/me', '/invite/abc'])(
  '%s is one of our paths',
  async (path) => {
    expect(await target(path)).toBe(path)
  },
)

test.each([
  'https://evil.example/',
  '//evil.example/',
  '/\\evil.example/',
  '/\t/evil.example/',
  '/.//evil.example/',
  'javascript:alert(1)',
  'settings',
  '/api/settings',
  '',
])('%p leads to the overview', async (path) => {
  expect(await target(path)).toBe('/dashboard')
})

const pageFrom = async (headers: Record<string, string>): Promise<string | null> =>
  ((await (await ask('POST /api/login', { headers })).json()) as { page: string | null }).page

test('the page of a form is taken from the browser’s headers, without its previous message', async () => {
  expect(await pageFrom({ referer: 'http://localhost:2455/login?return=%2Fme&problem=x&field=y&wait=3&done=z' })).toBe(
    '/login?return=%2Fme',
  )
  expect(await pageFrom({ 'hx-current-url': 'http://localhost:2455/me', referer: 'http://localhost:2455/' })).toBe(
    '/me',
  )
})

test.each([
  'http://evil.example/login',
  'http://localhost:2455/api/settings',
  'http://localhost:2455//evil.example/x',
  'nonsense',
])('%s is not one of our pages', async (referer) => {
  expect(await pageFrom({ referer })).toBeNull()
})

test('the return path is included only if it is not the default', () => {
  expect(withReturn('/login', '/dashboard')).toBe('/login')
  expect(withReturn('/login', '/me?x=1')).toBe('/login?return=%2Fme%3Fx%3D1')
})
