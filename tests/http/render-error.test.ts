/** One error in four formats: model client, dashboard JSON, htmx, browser. */
import { expect, test } from 'bun:test'
import { outcomeUnknown } from '../../db/busy.ts'
import { AppError } from '../../src/errors.ts'
import { getProblem, probe } from './probe.ts'

const failing = (error: unknown, over: Record<string, unknown> = {}) =>
  probe((app) => {
    for (const path of ['/v1/x', '/backend-api/codex/x', '/api/x', '/api/codex/x', '/page', '/v1x'])
      app.all(path, () => {
        throw error
      })
  }, over)
const HTML = { accept: 'text/html,*/*' }
const HTMX = { 'hx-request': 'true', ...HTML }

test.each(['/v1/x', '/backend-api/codex/x'])(
  '%s gets errors in the OpenAI format, whatever the client accepts',
  async (path) => {
    const { ask } = failing(new AppError('model_not_allowed', { param: 'model', retryAfterSeconds: 2.1 }))
    const response = await ask(`POST ${path}`, { headers: HTML })
    expect(response.status).toBe(403)
    expect(response.headers.get('retry-after')).toBe('3')
    expect(await getProblem(response)).toEqual({
      message: 'This API key does not have access to the model.',
      type: 'permission_error',
      code: 'model_not_allowed',
      param: 'model',
    })
  },
)

test('an unknown path of a model family gets that format too; a similar path does not', async () => {
  const { ask } = probe(() => {})
  expect(await getProblem(await ask('GET /v1/nothing'))).toMatchObject({
    type: 'invalid_request_error',
    code: 'not_found',
  })
  expect(await getProblem(await ask('GET /v1'))).toHaveProperty('type')
  expect(await getProblem(await ask('GET /v1x'))).not.toHaveProperty('type')
  expect(await getProblem(await ask('GET /api/codex/nothing'))).not.toHaveProperty('type')
})

test('dashboard JSON omits empty param and details', async () => {
  const bare = await failing(new AppError('not_found', { details: {} })).ask('POST /api/x')
  expect(await bare.json()).toEqual({
    error: { code: 'not_found', message: 'Not found. It may have been deleted, or the link is wrong.' },
  })
  const full = await failing(new AppError('permission_required', { param: 'audit:read', details: { a: 1 } })).ask(
    'GET /api/x',
  )
  expect(await getProblem(full)).toMatchObject({ param: 'audit:read', details: { a: 1 } })
})

test('a change that may have been saved is not called lost', async () => {
  const response = await failing(outcomeUnknown(null)).ask('POST /api/x')
  expect(response.status).toBe(503)
  expect(await getProblem(response)).toMatchObject({
    code: 'database_unavailable',
    message: expect.stringContaining('It may or may not be saved: check before you try again.'),
  })
})

test('htmx gets an escaped alert for the flash area, without a page around it', async () => {
  const response = await failing(new AppError('not_found', { message: '<script>alert(1)</script>' })).ask(
    'POST /api/x',
    {
      headers: HTMX,
    },
  )
  expect(response.status).toBe(404)
  expect(response.headers.get('hx-retarget')).toBe('#flash')
  const html = await response.text()
  expect(html).toContain('&lt;script&gt;')
  expect(html).not.toContain('<script')
  expect(html).not.toContain('<html')
})

test('a browser gets a page in the layout, with the status and only the navigation it can use', async () => {
  const response = await failing(new AppError('proxy_auth_required')).ask('GET /page', { headers: HTML })
  expect(response.status).toBe(401)
  const html = await response.text()
  expect(html).toStartWith('<!DOCTYPE html>')
  expect(html).toContain('proxy_auth_required')
  expect(html).not.toContain('<nav')
})

test('an unknown error is logged in full and shown as its request id only', async () => {
  const secret = new Error('password hunter2 in the dsn')
  const { ask, lines } = failing(secret)
  const response = await ask('GET /api/x', { headers: { 'x-request-id': 'abc-1' } })
  expect(response.status).toBe(500)
  expect(await response.text()).toBe(
    '{"error":{"code":"internal_error","message":"Something went wrong in Sluice. The server log has the details. Request id: abc-1"}}',
  )
  expect(lines).toMatchObject([{ level: 'error', fields: { request: 'abc-1', err: secret } }])
})

test.each(['/v1/x', '/api/x', '/page'])(
  'a full disk is not reported as a fault of %s, and no path is exposed',
  async (path) => {
    const full = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
    const { ask, lines } = failing(full)
    const response = await ask(`POST ${path}`)
    expect(response.status).toBe(503)
    expect(await getProblem(response)).toMatchObject({
      code: 'database_unavailable',
      message: 'The database cannot be read or written. The server log says why.',
    })
    expect(lines).toMatchObject([{ level: 'error', fields: { err: full } }])
  },
)

test('a missing folder is a database problem if the database is in it, and an internal error elsewhere', async () => {
  const noFolder = (path: string) => Object.assign(new Error('not a directory'), { code: 'ENOTDIR', path })
  const code = async (path: string, isLost: boolean) => {
    const ops = { lostDatabase: () => (isLost ? { says: 'It is lost.', advice: 'Find it.' } : null) }
    return (await getProblem(await failing(noFolder(path), { ops }).ask('GET /api/x'))).code
  }
  expect(await code('/data/backups', true)).toBe('database_unavailable')
  expect(await code('/data/backups', false)).toBe('internal_error')
  expect(await code('/database/x', true)).toBe('internal_error')
})

test('an expected rejection is not logged as an error', async () => {
  const { ask, lines } = failing(new AppError('account_not_found'))
  await ask('GET /api/x')
  expect(lines).toEqual([])
})
