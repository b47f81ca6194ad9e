/**
 * SIGTERM with running streams: new requests are rejected, running ones finish or get an error, and totals are
 * complete.
 */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { childrenOf, getThreads, PROGRAM, spawnServer } from '../support/spawn.ts'
import { PATIENCE_MS, until } from '../support/until.ts'
import { answers } from '../support/upstream/script.ts'
import { expectTotalsMatchRows, loggedRequests } from './books.ts'
import { getStatuses, sendRaw } from './raw.ts'
import { eventsUntilEnd, isTerminal, type Sim, sendTurn, startWorld } from './world.ts'

const SHORT = 5
const LONG = 5

test('draining', async () => {
  await using world = await startWorld({
    settings: ['proxyAccountStreamLimit=0'],
    limits: ['total_tokens:monthly:100m', 'requests:monthly:100m'],
    env: { CODEX_LB_SHUTDOWN_DRAIN_SECONDS: '3' },
  })
  const { sim, key, server, spawn } = world
  const start = async (kind: string, count: number) => {
    const asked = Array.from({ length: count }, (_, n) => sendTurn(server.url, key, { requestId: `${kind}-${n}` }))
    return (await Promise.all(asked)).map(eventsUntilEnd)
  }
  await sim.answer(answers.bulk(1000, 20, { dripMs: 50 }))
  const long = await start('long', LONG)
  await sim.answer(answers.bulk(20, 20, { dripMs: 20 }))
  const short = await start('short', SHORT)

  const stopping = server.stop()
  await untilDraining(server.url)

  for (const path of ['/backend-api/codex/responses', '/v1/responses', '/v1/chat/completions']) {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const refused = await fetch(`${server.url}${path}`, { ...FRESH, method: 'POST', headers, body: '{}' })
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(await refused.json()).toMatchObject({ error: { code: 'draining', type: 'server_error' } })
  }

  for (const events of await Promise.all(short))
    expect(events.filter(isTerminal).map(({ type }) => type)).toEqual(['response.completed'])
  for (const events of await Promise.all(long)) {
    expect(events.filter(isTerminal).map(({ type }) => type)).toEqual(['response.failed'])
    expect(events.at(-1)).toMatchObject({ type: 'response.failed', response: { error: { code: 'draining' } } })
  }
  expect(await stopping).toBe(0)

  const rows = loggedRequests(spawn.dataDir)
  const getStatus = (kind: string) =>
    rows.filter(({ requestId }) => requestId.startsWith(kind)).map(({ status, errorCode }) => errorCode ?? status)
  expect(getStatus('short')).toEqual(Array(SHORT).fill('ok'))
  expect(getStatus('long')).toEqual(Array(LONG).fill('draining'))
  expect(rows).toHaveLength(SHORT + LONG)
  expectTotalsMatchRows(spawn.dataDir)
}, 120_000)

test('one stop that arrives as two signals interrupts nothing; a later one does', async () => {
  await using world = await startWorld({ env: { CODEX_LB_SHUTDOWN_DRAIN_SECONDS: '20' } })
  const { sim, key, server } = world
  await sim.answer(answers.bulk(50, 20, { dripMs: 20 }))
  const events = eventsUntilEnd(await sendTurn(server.url, key))
  await sim.answer(answers.bulk(2000, 20, { dripMs: 20 }))
  const long = eventsUntilEnd(await sendTurn(server.url, key))
  const stopping = server.stop()
  await Bun.sleep(20)
  process.kill(server.pid, 'SIGTERM')
  expect((await events).at(-1)?.type).toBe('response.completed')
  await Bun.sleep(1100)
  process.kill(server.pid, 'SIGTERM')
  expect(await stopping).toBe(1)
  await long.catch(() => {}) // it is cut off
}, 120_000)

test('closing the terminal it was started in is a stop, too', async () => {
  await using world = await startWorld({ accounts: 0 })
  await world.server.stop()
  const said: Uint8Array[] = []
  const terminal = { data: (_: unknown, bytes: Uint8Array) => void said.push(bytes) }
  const child = Bun.spawn([...PROGRAM, 'serve'], { env: world.server.env, terminal })
  await until(() => Buffer.concat(said).includes('listening'))
  child.terminal?.close()
  expect([await child.exited, child.signalCode]).toEqual([0, null])
}, 120_000)

test('under a nohup that keeps the terminal as input, like that of BSD, it is not', async () => {
  await using world = await startWorld({ accounts: 0 })
  const { env, url, dataDir } = world.server
  await world.server.stop()
  const log = join(dataDir, 'nohup.out')
  const nohup = `trap '' HUP; exec ${PROGRAM.join(' ')} serve > "${log}" 2>&1`
  const child = Bun.spawn(['sh', '-c', nohup], { env, terminal: {} })
  await until(() => existsSync(log) && readFileSync(log, 'utf8').includes('listening'))
  const [worker] = childrenOf(child.pid)
  child.kill('SIGHUP')
  process.kill(worker!, 'SIGHUP') // a terminal sends it to every process of its group
  expect((await fetch(`${url}/health/ready`)).status).toBe(200)
  expect(childrenOf(child.pid)).toEqual([worker!])
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  expect(readFileSync(log, 'utf8')).toContain('stopping reason=SIGTERM')
}, 120_000)

test('with nothing running it ends immediately', async () => {
  await using world = await startWorld({ accounts: 0 })
  const began = performance.now()
  expect(await world.server.stop()).toBe(0)
  expect(performance.now() - began).toBeLessThan(20_000) // it would take the 30 s of the drain
}, 120_000)

test.each([
  ['the log', ['/logs'], []],
  ['reports and the whole database', ['/reports', '/settings/data'], []],
  ['what a replay needs', ['/api/reports/strategies?days=7'], []],
  ['the log, of two processes', ['/logs', '/logs', '/logs', '/logs'], ['--processes', '2']],
])(
  'a stop removes the write-ahead log after threads have read %s',
  async (_, paths, args) => {
    await using world = await startWorld({ accounts: 1, args })
    const { server, key } = world
    await eventsUntilEnd(await sendTurn(server.url, key))
    const headers = { connection: 'close', accept: 'text/html' }
    for (const path of paths) expect((await fetch(`${server.url}${path}`, { headers })).status).toBe(200)
    expect(existsSync(join(server.dataDir, 'sluice.db-wal'))).toBe(true)
    expect(await server.stop()).toBe(0)
    expect(readdirSync(server.dataDir).filter((name) => name.startsWith('sluice.db'))).toEqual(['sluice.db'])
  },
  120_000,
)

test('a change that waits for the database is answered', async () => {
  await using world = await startWorld({ accounts: 0 })
  const { server, spawn } = world
  await fetch(`${server.url}/api/settings`) // the first request loads the dashboard, which takes long on a busy machine
  const other = new Database(join(spawn.dataDir, 'sluice.db'))
  other.run('PRAGMA busy_timeout = 5000')
  other.run('BEGIN IMMEDIATE')
  const head = 'PUT /api/settings HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2'
  const isRead = Promise.withResolvers<void>()
  const change = sendRaw(server.port, [`${head}\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n`, '{}'], {
    waitMs: PATIENCE_MS,
    until: (answer) => {
      if (answer.includes('100 Continue')) isRead.resolve()
      return getStatuses(answer).some((status) => status !== 100)
    },
  })
  await isRead.promise
  const stopping = server.stop()
  await untilDraining(server.url)
  other.run('ROLLBACK')
  other.close()
  expect([200, 503]).toContain(getStatuses(await change).at(-1)!) // 503: the machine was too slow for the second a commit waits
  expect(await stopping).toBe(0)
}, 120_000)

test('a request that waits for its token gets an error, and the token that arrives later is kept', async () => {
  await using world = await startWorld({ accounts: 1, env: { CODEX_LB_SHUTDOWN_DRAIN_SECONDS: '1' } })
  const { sim, key, server, spawn } = world
  const [account] = (await (await fetch(`${sim.url}/_sim/accounts`)).json()) as { chatgptAccountId: string }[] // as: its own format
  const tell = (what: string, body: object) =>
    fetch(`${sim.url}/_sim/accounts/${account?.chatgptAccountId}/${what}`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
  await tell('faults', { next: { on: 'token', delayHeadersMs: 2500 } })
  await tell('expire', {})
  const asked = sendTurn(server.url, key)
  await untilAsked(sim, '/oauth/token')
  const stopping = server.stop()
  const response = await asked
  expect([response.status, await response.json()]).toMatchObject([503, { error: { code: 'draining' } }])
  expect(await stopping).toBe(0)

  await using again = await spawnServer(spawn)
  const events = await eventsUntilEnd(await sendTurn(again.url, key))
  expect(events.at(-1)?.type).toBe('response.completed')
  expect((await sim.look<{ path: string }[]>('requests')).filter(({ path }) => path === '/oauth/token')).toHaveLength(1)
}, 120_000)

test.skipIf(process.platform !== 'linux')(
  'a thread writes the log of many requests, and a stop leaves no write-ahead log',
  async () => {
    await using world = await startWorld()
    const { server, key } = world
    expect(getThreads(server.workers()[0]!)).toContain('writer')
    const client = async () => {
      for (let n = 0; n < 20; n++) await eventsUntilEnd(await sendTurn(server.url, key))
    }
    await Promise.all(Array.from({ length: 16 }, client))
    expect(await server.stop()).toBe(0)
    expect(readdirSync(server.dataDir).filter((name) => /-wal|-shm|pid/.test(name))).toEqual([])
    expectTotalsMatchRows(server.dataDir)
  },
  120_000,
)

const untilAsked = ({ look }: Sim, wanted: string): Promise<void> =>
  until(async () => (await look<{ path: string }[]>('requests')).some(({ path }) => path === wanted))

/** A connection of its own: a draining server closes idle ones, which may be when a request is sent. */
const FRESH = { keepalive: false } as const

/** Or already over. */
const untilDraining = (url: string): Promise<void> =>
  until(async () => {
    const status = await fetch(`${url}/health/ready`, FRESH).then(
      (response) => response.status,
      () => null,
    )
    return status !== 200
  })
