/**
 * Another process holds the database's write lock: requests continue, and their results are stored when it is
 * released.
 */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { until } from '../support/until.ts'
import { faults } from '../support/upstream/faults.ts'
import { expectTotalsMatchRows, loggedRequests } from './books.ts'
import { eventsUntilEnd, type Sim, sendTurn, startWorld } from './world.ts'

test('a rejection under a foreign lock moves the request to another account, and the block is not lost', async () => {
  await using world = await startWorld({ settings: ['routingStrategy=sequential_drain'] })
  const { sim, key, server } = world
  await eventsUntilEnd(await sendTurn(server.url, key)) // everything is warm
  const other = connected(server.dataDir)
  const statuses = () => other.query<{ status: string }, []>('SELECT status FROM accounts ORDER BY status').all()
  await limitOne(sim)
  other.run('BEGIN IMMEDIATE')
  const began = performance.now()
  const response = await sendTurn(server.url, key)
  expect(response.status).toBe(200)
  expect((await eventsUntilEnd(response)).at(-1)?.type).toBe('response.completed')
  expect(performance.now() - began).toBeLessThan(4500)
  expect(statuses()).toEqual([{ status: 'active' }, { status: 'active' }])
  const [{ accountId }] = (await (await fetch(`${server.url}/api/accounts`)).json()).accounts
  const change = { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{"alias":"ada"}' }
  const refused = await fetch(`${server.url}/api/accounts/${accountId}/alias`, change)
  expect([refused.status, await refused.json()]).toMatchObject([503, { error: { code: 'busy' } }])
  other.run('ROLLBACK')
  await until(() => statuses().some(({ status }) => status === 'rate_limited'))
  other.close()
}, 120_000)

test('under a foreign lock a change is rejected with a retry time, and no ended request is lost', async () => {
  await using world = await startWorld({ limits: ['total_tokens:monthly:100m', 'requests:monthly:100m'] })
  const { key, server } = world
  const { url, dataDir } = server
  const written = () => loggedRequests(dataDir).map(({ requestId }) => requestId)
  const readiness = async () => (await fetch(`${url}/health/ready`)).status
  const serve = async (requestId: string) =>
    expect((await eventsUntilEnd(await sendTurn(url, key, { requestId }))).at(-1)?.type).toBe('response.completed')
  const [{ accountId }] = (await (await fetch(`${url}/api/accounts`)).json()).accounts
  const change = { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{"alias":"ada"}' }
  const rename = () => fetch(`${url}/api/accounts/${accountId}/alias`, change)
  await serve('before')
  await until(() => written().length === 1)

  const other = connected(dataDir)
  other.run('BEGIN IMMEDIATE')
  for (const requestId of ['one', 'two', 'three']) await serve(requestId)
  await until(async () => (await readiness()) === 503)
  // Other requests do not wait with a change: the fastest of five shows it, whatever else the machine does.
  const took: number[] = []
  for (let n = 0; n < 5; n++) {
    const refusing = rename()
    const began = performance.now()
    expect((await fetch(`${url}/health`)).status).toBe(200)
    took.push(performance.now() - began)
    expect((await refusing).status).toBe(503)
  }
  expect(Math.min(...took)).toBeLessThan(100)
  const refused = await rename()
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await refused.json()).toMatchObject({ error: { code: 'busy' } })
  expect(written()).toEqual(['before'])
  other.run('ROLLBACK')
  other.close()

  await until(async () => (await readiness()) === 200)
  expect(written()).toEqual(['before', 'one', 'two', 'three'])
  expectTotalsMatchRows(dataDir)
  expect((await rename()).status).toBe(200)
}, 120_000)

test('under a foreign lock queued changes are rejected together, and a stop does not wait for each', async () => {
  await using world = await startWorld({ accounts: 1 })
  const { server } = world
  const [{ accountId }] = (await (await fetch(`${server.url}/api/accounts`)).json()).accounts
  const change = { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{"alias":"ada"}' }
  const rename = () => fetch(`${server.url}/api/accounts/${accountId}/alias`, change)
  const renamings = () => Array.from({ length: 8 }, rename)
  const other = connected(server.dataDir)
  other.run('BEGIN IMMEDIATE')
  const began = performance.now()
  const statuses = (await Promise.all(renamings())).map(({ status }) => status)
  expect(statuses).toEqual(Array(8).fill(503))
  expect(performance.now() - began).toBeLessThan(5000) // one after the other they would take eight seconds
  other.run('ROLLBACK')
  await until(async () => (await rename()).status === 200)

  other.run('BEGIN IMMEDIATE')
  const last = Promise.all(renamings())
  await fetch(`${server.url}/health/live`)
  expect(await server.stop()).toBe(0)
  expect((await last).map(({ status }) => status)).toEqual(statuses)
  other.close()
}, 120_000)

test('the last write waits for a foreign lock, so that a stop loses no ended request', async () => {
  await using world = await startWorld()
  const { key, server } = world
  await eventsUntilEnd(await sendTurn(server.url, key))
  await until(() => loggedRequests(server.dataDir).length === 1)
  const other = connected(server.dataDir)
  other.run('BEGIN IMMEDIATE')
  await eventsUntilEnd(await sendTurn(server.url, key, { requestId: 'last' }))
  const stopping = server.stop()
  await Bun.sleep(1000)
  other.run('ROLLBACK')
  other.close()
  expect(await stopping).toBe(0)
  expect(loggedRequests(server.dataDir).map(({ requestId }) => requestId)).toContain('last')
  expectTotalsMatchRows(server.dataDir)
}, 120_000)

/** As another process. */
const connected = (dataDir: string): Database => {
  const sqlite = new Database(join(dataDir, 'sluice.db'))
  sqlite.run('PRAGMA busy_timeout = 5000') // the server may be writing
  return sqlite
}

/** The account that served last rejects the next request. */
const limitOne = async ({ url, look }: Sim): Promise<void> => {
  const asked = await look<{ path: string; headers: Record<string, string> }[]>('requests')
  const id = asked.findLast(({ path }) => path.endsWith('/codex/responses'))?.headers['chatgpt-account-id']
  const always = faults.usageLimit({ resetsAt: Date.now() + 3_600_000 })
  const set = await fetch(`${url}/_sim/accounts/${id}/faults`, { method: 'POST', body: JSON.stringify({ always }) })
  expect(set.status).toBe(204)
}
