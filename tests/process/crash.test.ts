/**
 * A kill in the middle of 200 streams: nothing that ended a quarter of a second earlier is lost, and totals are
 * correct.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { runCommand, spawnServer } from '../support/spawn.ts'
import { until } from '../support/until.ts'
import { answers } from '../support/upstream/script.ts'
import { expectTotalsMatchRows, loggedRequests } from './books.ts'
import { eventsUntilEnd, isTerminal, sendTurn, startWorld, type World } from './world.ts'

const STREAMS = 200
/** From the end of a turn to the disk (decisions §3, architecture §3.12). */
const PROMISE_MS = 250
/** Between the starts of two clients, so that at any moment some streams end and others are in progress. */
const STAGGER_MS = 2
const JSON_BODY = { 'content-type': 'application/json' }
const LIMITS = ['total_tokens:monthly:100m', 'requests:monthly:100m']

let world: World
beforeAll(async () => {
  world = await startWorld({ accounts: 4, settings: ['proxyAccountStreamLimit=0'], limits: LIMITS, isBusy: true })
}, 120_000)
afterAll(() => world?.[Symbol.asyncDispose]())

test('kill -9 in the middle of 200 streams', async () => {
  const { sim, key, server, spawn } = world
  await sim.answer(answers.bulk(20, 50, { dripMs: 15, usage: { inputTokens: 100, outputTokens: 20 } }))
  const ended = new Set<string>()
  let isKilled = false
  let started = 0
  const client = async (n: number) => {
    await Bun.sleep(n * STAGGER_MS)
    while (!isKilled) {
      const requestId = `turn-${started++}`
      const response = await sendTurn(server.url, key, { requestId }).catch(() => null) // rejected or cut off by the kill
      if (!response) return
      const events = await eventsUntilEnd(response)
      if (events.at(-1)?.type === 'response.completed') ended.add(requestId)
    }
  }
  const clients = Array.from({ length: STREAMS }, (_, n) => client(n))
  await until(() => ended.size >= STREAMS)
  const promised = [...ended]
  await untilDue(server.url)
  await until(async () => (await sim.look<{ openStreams: number }>('stats')).openStreams > STREAMS / 2)
  isKilled = true
  await server.kill()
  await Promise.all(clients)

  const logged = new Map(loggedRequests(spawn.dataDir).map((row) => [row.requestId, row]))
  expect(promised.filter((id) => logged.get(id)?.status !== 'ok')).toEqual([])
  expectTotalsMatchRows(spawn.dataDir)
}, 120_000)

/**
 * Until all that has ended now should be on the disk, however slow the machine is. Writes are stored in the order in
 * which they are requested: the first change is stored after the write that was running, and the last one after the
 * write that was due a quarter of a second later.
 */
const untilDue = async (url: string): Promise<void> => {
  for (const n of [1, 2, 3]) {
    if (n < 3) await Bun.sleep(PROMISE_MS)
    const change = { method: 'PUT', headers: JSON_BODY, body: JSON.stringify({ auditRetentionDays: 100 + n }) }
    expect((await fetch(`${url}/api/settings`, change)).status).toBe(200)
  }
}

test('the next start serves the next request, and the accounts stay balanced', async () => {
  const { sim, key, spawn } = world
  const before = loggedRequests(spawn.dataDir).length
  await using restarted = await spawnServer(spawn)
  const events = await eventsUntilEnd(await sendTurn(restarted.url, key, { requestId: 'after-the-crash' }))
  expect(events.filter(isTerminal).map(({ type }) => type)).toEqual(['response.completed'])
  expect(await restarted.stop()).toBe(0)
  expect(loggedRequests(spawn.dataDir)).toHaveLength(before + 1)
  expectTotalsMatchRows(spawn.dataDir)
  expect(await sim.look<string[]>('oddities')).toEqual([])
}, 120_000)

test('a second server on the same folder is rejected, naming the process that uses it', async () => {
  const { spawn } = world
  await using first = await spawnServer(spawn)
  const { exitCode, stdout, stderr } = await runCommand(['serve'], { ...spawn, env: { ...spawn.env, PORT: '0' } })
  expect(exitCode).toBe(1)
  expect(stderr).toContain(`process ${first.pid}`)
  expect(stderr).toContain(spawn.dataDir)
  expect(stderr).not.toContain('    at ')
  expect(stdout).not.toContain('listening')
  expect((await fetch(`${first.url}/health/ready`)).status).toBe(200)
}, 120_000)
