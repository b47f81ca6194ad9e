/** `sluice reload` under load: nothing is cut, refused or lost while one server process replaces another. */
import { Database } from 'bun:sqlite'
import { afterEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codexBody } from '../support/app.ts'
import { connectSocket } from '../support/socket-client.ts'
import { type RunningServer, runCommand, spawnServer } from '../support/spawn.ts'
import { until } from '../support/until.ts'
import { answers } from '../support/upstream/script.ts'
import { expectTotalsMatchRows, loggedRequests } from './books.ts'
import { keepAlive } from './keep-alive.ts'
import { eventsUntilEnd, isTerminal, sendTurn, startWorld, type World } from './world.ts'

const NATIVE = '/backend-api/codex/responses'
const RESTARTING = 1012
const STREAMS = Number(process.env.RELOAD_STREAMS ?? 20) // of each transport; more in the soak
const RELOADS = 3

const create = (text?: string) => ({ type: 'response.create', ...codexBody(text) })

const open = ({ key, server }: World, requestId: string) =>
  connectSocket(server.url + NATIVE, {
    headers: { authorization: `Bearer ${key}`, 'x-request-id': requestId, 'user-agent': 'test' },
    timeoutMs: 60_000,
  })

const reload = (server: RunningServer) => runCommand(['reload'], { env: server.env, timeoutMs: 60_000 })

/** Between two commits: within one, it would hold the lock that every other process needs to write. */
const freeze = async ({ dataDir }: RunningServer, pid: number): Promise<void> => {
  using other = new Database(join(dataDir, 'sluice.db'), { readwrite: true })
  other.run('PRAGMA busy_timeout = 0')
  await until(async () => {
    process.kill(pid, 'SIGSTOP')
    await Bun.sleep(100) // its threads stop one by one
    try {
      other.run('BEGIN IMMEDIATE')
      other.run('ROLLBACK')
      return true
    } catch {
      process.kill(pid, 'SIGCONT')
      return false
    }
  })
}

/** The process that holds the lock of the jobs, as the kernel lists it (proc_locks(5)). */
const holderOfJobs = ({ dataDir }: RunningServer): number | null => {
  const { ino } = statSync(join(dataDir, 'locks', 'jobs.lock'))
  const line = readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .find((one) => one.includes(`:${ino} `))
  return line ? Number(/WRITE\s+(\d+)/.exec(line)?.[1]) : null
}

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

/** New connections with one short request each until `stop`; returns what happened to them. */
const shortRequests = (port: number, clients: number) => {
  const seen: Record<string, number> = {}
  let isOver = false
  const one = () =>
    new Promise<void>((resolve) => {
      let text = ''
      const done = (outcome: string) => {
        seen[outcome] = (seen[outcome] ?? 0) + 1
        socket.destroy()
        resolve()
      }
      const socket = connect(port, '127.0.0.1', () =>
        socket.write('GET /health/ready HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'),
      )
      socket.on('data', (bytes) => {
        text += bytes
      })
      socket.on('error', (err: NodeJS.ErrnoException) => done(err.code ?? err.message))
      socket.on('end', () => done(text.split(' ')[1] ?? 'closed without an answer'))
    })
  const all = Array.from({ length: clients }, async () => {
    while (!isOver) {
      await one()
      await Bun.sleep(20) // leaves the processors to the servers
    }
  })
  return {
    stop: async () => {
      isOver = true
      await Promise.all(all)
      return seen
    },
  }
}

test(`${2 * STREAMS} streams on both transports outlive ${RELOADS} reloads, and short requests never notice`, async () => {
  await using world = await startWorld({
    accounts: 4,
    settings: ['proxyAccountStreamLimit=0', 'socketsPerKey=1000', 'socketsPerClient=1000'],
    limits: ['total_tokens:monthly:100m', 'requests:monthly:100m'],
    isBusy: true,
  })
  const { sim, key, server, spawn } = world
  await sim.answer(answers.bulk(150 + 2 * STREAMS, 20, { dripMs: 200, usage: { inputTokens: 100, outputTokens: 20 } }))
  const long = await Promise.all(
    Array.from({ length: STREAMS }, (_, n) => sendTurn(server.url, key, { requestId: `http-${n}` })),
  )
  const ends = long.map(eventsUntilEnd)
  const sockets = await Promise.all(Array.from({ length: STREAMS }, (_, n) => open(world, `socket-${n}`)))
  const socketTurns = sockets.map((socket) => socket.turn(create()))
  await Promise.all(sockets.map((socket) => socket.next(({ type }) => type === 'response.output_text.delta')))

  const short = shortRequests(server.port, 8)
  await sim.answer(answers.bulk(3, 20, { usage: { inputTokens: 10, outputTokens: 2 } }))
  let between = 0
  for (let n = 0; n < RELOADS; n++) {
    expect(await reload(server)).toMatchObject({ exitCode: 0, stderr: '' })
    for (let turn = 0; turn < 5; turn++) {
      const events = await eventsUntilEnd(await sendTurn(server.url, key, { requestId: `short-${between++}` }))
      expect(events.at(-1)?.type).toBe('response.completed')
    }
  }
  expect(server.workers()).toHaveLength(RELOADS + 1)
  expect((await sim.look<{ openStreams: number }>('stats')).openStreams).toBe(2 * STREAMS) // all outlived the reloads

  for (const events of await Promise.all(ends))
    expect(events.filter(isTerminal).map(({ type }) => type)).toEqual(['response.completed'])
  for (const events of await Promise.all(socketTurns)) expect(events.at(-1)?.type).toBe('response.completed')
  for (const { closed } of sockets) expect((await closed).code).toBe(RESTARTING)
  const seen = await short.stop()
  expect(Object.keys(seen)).toEqual(['200'])
  expect(seen['200']).toBeGreaterThan(100)
  expect(await server.stop()).toBe(0)
  const rows = loggedRequests(spawn.dataDir)
  expect(rows.filter(({ status }) => status !== 'ok')).toEqual([])
  expect(rows).toHaveLength(2 * STREAMS + between)
  expectTotalsMatchRows(spawn.dataDir)
  expect(server.output()).not.toContain('ERROR')
}, 600_000)

test('a successor that cannot start changes nothing, and the message says why', async () => {
  await using world = await startWorld({ accounts: 1 })
  const { sim, key, server } = world
  await sim.answer(answers.bulk(100, 20, { dripMs: 50 }))
  const running = eventsUntilEnd(await sendTurn(server.url, key))
  const envFile = join(server.dataDir, '.env')
  const [before] = server.workers()
  for (const [line, why] of [
    ['SLUICE_SHUTDOWN_DRAIN_SECONDS=soon', 'SLUICE_SHUTDOWN_DRAIN_SECONDS="soon" cannot be used'],
    ['SLUICE_PUBLIC_URL=ftp://nowhere', 'SLUICE_PUBLIC_URL="ftp://nowhere" cannot be used'],
    ['SLUICE_REALTIME_BASE_URL=https://a.test/?b', 'must have no query'],
    ['SLUICE_ENCRYPTION_KEY_FILE=/nowhere/key', 'The encryption key file /nowhere/key is missing'],
  ] as const) {
    writeFileSync(envFile, `${line}\n`)
    const { exitCode, stdout, stderr } = await reload(server)
    expect([exitCode, stdout]).toEqual([1, ''])
    expect(stderr).toContain('The reload failed, and the running server goes on.')
    expect(stderr).toContain(why)
    expect(server.workers()).toEqual([before!])
    expect((await fetch(`${server.url}/health/ready`)).status).toBe(200)
  }
  writeFileSync(envFile, 'SLUICE_LOG_LEVEL=info\n')
  const sqlite = new Database(join(server.dataDir, 'sluice.db'))
  sqlite.run("INSERT INTO migrations VALUES ('9999_later', '', 0)")
  const { exitCode, stderr } = await reload(server)
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('The database was written by a newer version')])
  sqlite.run("DELETE FROM migrations WHERE name = '9999_later'")
  sqlite.close()
  expect((await reload(server)).exitCode).toBe(0)
  expect((await running).at(-1)?.type).toBe('response.completed')
}, 60_000)

test('the streams of the old process count towards the limit of an account', async () => {
  await using world = await startWorld({
    accounts: 1,
    settings: ['proxyAccountStreamLimit=2', 'capacityWaitSeconds=60'],
  })
  const { sim, key, server } = world
  await sim.answer(answers.bulk(60, 20, { dripMs: 50 }))
  const send = async () => (await eventsUntilEnd(await sendTurn(server.url, key))).at(-1)?.type
  const streams = () => sim.look<{ peakStreams: number }>('stats')
  const running = [send(), send()]
  await until(async () => (await streams()).peakStreams === 2)
  expect((await reload(server)).exitCode).toBe(0)
  const ended = await Promise.all([...running, send(), send(), send()])
  expect(new Set(ended)).toEqual(new Set(['response.completed']))
  expect((await streams()).peakStreams).toBe(2)
}, 60_000)

test('of two reloads at once, one works and the other says so', async () => {
  await using world = await startWorld({ accounts: 0 })
  const both = await Promise.all([reload(world.server), reload(world.server)])
  expect(both.map(({ exitCode }) => exitCode).sort()).toEqual([0, 1])
  expect(both.map(({ stderr }) => stderr).join('')).toContain('Another reload is already running')
  await world.server.stop()
  const { exitCode, stderr } = await reload(world.server)
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('No server is running')])
}, 60_000)

test('after a crash, reload leaves a program alone that got the process id of the server', async () => {
  await using world = await startWorld({ accounts: 0 })
  const { server } = world
  const report = join(server.dataDir, 'sluice.reload')
  const { pid, ...rest } = JSON.parse(readFileSync(report, 'utf8')) as { pid: number } // as: its own format
  expect(pid).toBe(server.pid)
  await server.kill()
  const other = Bun.spawn(['sleep', '60'])
  cleanUps.push(() => other.kill('SIGKILL'))
  writeFileSync(report, JSON.stringify({ pid: other.pid, ...rest }))
  writeFileSync(join(server.dataDir, 'sluice.pid'), `${other.pid}\n`)
  expect(await reload(server)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('No server is running') })
  expect([other.exitCode, other.signalCode]).toEqual([null, null])
}, 60_000)

test('a clean exit leaves no result of a reload behind', async () => {
  await using world = await startWorld({ accounts: 0 })
  const report = join(world.server.dataDir, 'sluice.reload')
  expect(existsSync(report)).toBe(true)
  expect(await world.server.stop()).toBe(0)
  expect(existsSync(report)).toBe(false)
}, 60_000)

test('kill -9 of the new process while the old one has clients: they are served to the end, and so is the next one', async () => {
  await using world = await startWorld({ accounts: 1, limits: ['requests:monthly:1000'] })
  const { sim, key, server } = world
  await sim.answer(answers.bulk(400, 20, { dripMs: 50 }))
  const running = eventsUntilEnd(await sendTurn(server.url, key))
  await reload(server)
  await Bun.sleep(10_000 - 2000) // the supervisor does not replace what dies at once
  const [old, killed] = server.workers()
  const short = shortRequests(server.port, 2)
  await Bun.sleep(2500)
  process.kill(killed!, 'SIGKILL')
  await until(() => server.workers().some((pid) => pid !== old && pid !== killed))
  await until(() => server.output().split('reloaded').length > 2)
  const { 200: served = 0 } = await short.stop()
  expect(served).toBeGreaterThan(10)
  expect((await running).at(-1)?.type).toBe('response.completed')
  await sim.answer(answers.bulk(3, 20))
  expect((await eventsUntilEnd(await sendTurn(server.url, key))).at(-1)?.type).toBe('response.completed')
  expect(await server.stop()).toBe(0)
  expectTotalsMatchRows(server.dataDir)
}, 60_000)

test('kill -9 of the new process during the hand-over: another one is started, and the message names it', async () => {
  await using world = await startWorld({ accounts: 1 })
  const { server } = world
  const [old] = server.workers()
  await freeze(server, old!) // the hand-over waits for it
  const result = reload(server)
  await until(
    () => server.output().includes('the new processes are ready'),
    () => server.output(),
  )
  const killed = server.workers().at(-1)!
  process.kill(killed, 'SIGKILL')
  await until(() => !server.workers().includes(killed))
  process.kill(old!, 'SIGCONT')
  const { exitCode, stdout, stderr } = await result
  const [, next] = server.workers()
  expect([exitCode, stderr, stdout]).toEqual([0, '', expect.stringContaining(`Process ${next} serves new requests.`)])
  expect((await fetch(`${server.url}/health/ready`)).status).toBe(200)
  expect(await server.stop()).toBe(0)
}, 120_000)

test('an old process that stands still neither blocks its reload nor the next one', async () => {
  await using world = await startWorld({ accounts: 0 })
  const { server } = world
  const [old] = server.workers()
  await freeze(server, old!)
  const { exitCode, stdout } = await runCommand(['reload'], { env: server.env, timeoutMs: 100_000 })
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining(`Process ${old} did not hand over within 30 s.`)])
  expect((await reload(server)).exitCode).toBe(0)
  process.kill(old!, 'SIGCONT')
  await until(() => holderOfJobs(server) === server.workers().at(-1))
}, 120_000)

test('a stop during a reload is not reported as a reload', async () => {
  await using world = await startWorld({ accounts: 1 })
  const { server } = world
  const [old] = server.workers()
  await freeze(server, old!) // the hand-over waits for it
  const result = reload(server)
  await until(
    () => server.output().includes('the new processes are ready'),
    () => server.output(),
  )
  const exitCode = server.stop()
  await until(() => server.workers().length === 1)
  process.kill(old!, 'SIGCONT')
  expect(await result).toMatchObject({ exitCode: 1, stdout: '', stderr: expect.stringContaining('is stopping.') })
  expect(await exitCode).toBe(0)
  expect(server.output()).not.toContain('reloaded')
}, 120_000)

test('kill -9 of the old process: the new one serves on and gets the jobs', async () => {
  await using world = await startWorld({ accounts: 1 })
  const { sim, key, server } = world
  await sim.answer(answers.bulk(400, 20, { dripMs: 50 }))
  const cut = eventsUntilEnd(await sendTurn(server.url, key))
  await reload(server)
  const [old, next] = server.workers()
  process.kill(old!, 'SIGKILL')
  await cut
  await sim.answer(answers.bulk(3, 20))
  expect((await eventsUntilEnd(await sendTurn(server.url, key))).at(-1)?.type).toBe('response.completed')
  expect(server.workers()).toEqual([next!])
  await until(() => holderOfJobs(server) === next)
  expect((await reload(server)).exitCode).toBe(0)
}, 60_000)

test('kill -9 of the supervisor ends the server, and the folder is free again', async () => {
  await using world = await startWorld({ accounts: 1 })
  const { sim, key, server, spawn } = world
  await sim.answer(answers.bulk(400, 20, { dripMs: 50 }))
  const cut = eventsUntilEnd(await sendTurn(server.url, key))
  const [worker] = server.workers()
  process.kill(server.pid, 'SIGKILL')
  expect((await cut).at(-1)).toMatchObject({ type: 'response.failed', response: { error: { code: 'draining' } } })
  await until(() => !existsSync(`/proc/${worker}`))
  expect(loggedRequests(spawn.dataDir)).toHaveLength(1)
  await sim.answer(answers.bulk(3, 20))
  await using again = await spawnServer(spawn)
  expect((await eventsUntilEnd(await sendTurn(again.url, key))).at(-1)?.type).toBe('response.completed')
}, 60_000)

test('the jobs run in one process at a time', async () => {
  await using world = await startWorld({ accounts: 0 })
  const { server } = world
  const [first] = server.workers()
  expect(holderOfJobs(server)).toBe(first!)
  for (let n = 1; n <= 2; n++) {
    expect((await reload(server)).exitCode).toBe(0)
    await until(() => holderOfJobs(server) === server.workers().at(-1))
  }
}, 60_000)

test('a token is refreshed once, also when both processes need it at the same moment', async () => {
  await using world = await startWorld({ accounts: 1 })
  const { sim, key, server } = world
  const [account] = (await (await fetch(`${sim.url}/_sim/accounts`)).json()) as { chatgptAccountId: string }[] // as: its own format
  const tell = (what: string, body: object) =>
    fetch(`${sim.url}/_sim/accounts/${account?.chatgptAccountId}/${what}`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
  await sim.answer(answers.bulk(3, 20))
  using old = keepAlive(server.port)
  expect(await old.turn(key)).toContain('response.completed')
  expect((await reload(server)).exitCode).toBe(0)
  await tell('faults', { next: { on: 'token', delayHeadersMs: 1000 } })
  await tell('expire', {})
  const [before, after] = await Promise.all([
    old.turn(key),
    sendTurn(server.url, key).then((response) => response.text()),
  ])
  expect(before).toContain('connection: close')
  for (const text of [before, after]) expect(text).toContain('response.completed')
  const asked = await sim.look<{ path: string }[]>('requests')
  expect(asked.filter(({ path }) => path === '/oauth/token')).toHaveLength(1)
  expect(await sim.look<string[]>('oddities')).toEqual([])
}, 60_000)

test('a conversation that ended on the old process goes on with its account on the new one', async () => {
  await using world = await startWorld({ accounts: 4, settings: ['routingStrategy=round_robin'] })
  const { sim, key, server } = world
  await sim.answer(answers.bulk(60, 20, { dripMs: 50 }))
  const ask = (id: string) => sendTurn(server.url, key, { headers: { 'session-id': id } })
  const ids = Array.from({ length: 8 }, (_, n) => `conversation-${n}`)
  const running = await Promise.all(ids.map(ask))
  expect((await reload(server)).exitCode).toBe(0)
  await Promise.all(running.map(eventsUntilEnd))
  await sim.answer(answers.bulk(3, 20))
  await Promise.all((await Promise.all(ids.map(ask))).map(eventsUntilEnd))
  const requests = await sim.look<{ path: string; account: string; headers: Record<string, string> }[]>('requests')
  const accountsOf = (id: string) =>
    requests.filter(({ headers }) => headers['session-id'] === id).map(({ account }) => account)
  for (const id of ids) {
    expect(accountsOf(id)).toHaveLength(2)
    expect(new Set(accountsOf(id)).size).toBe(1)
  }
}, 60_000)

test('an open dashboard is sent to the new process', async () => {
  await using world = await startWorld({ accounts: 0 })
  const { server } = world
  const stream = await fetch(`${server.url}/api/events`)
  const text = stream.text()
  expect((await reload(server)).exitCode).toBe(0)
  expect(await text).toContain('event: hello')
  const again = await fetch(`${server.url}/api/events`, { headers: { 'last-event-id': 'x.1' } })
  const reader = again.body!.getReader()
  expect(new TextDecoder().decode((await reader.read()).value)).toContain('accounts')
  await reader.cancel()
}, 60_000)

test('an open dashboard that reconnects on its old connection is sent to the new process, too', async () => {
  await using world = await startWorld({ accounts: 0 })
  const { server } = world
  const socket = connect(server.port, '127.0.0.1')
  cleanUps.push(() => void socket.destroy())
  let text = ''
  let isClosed = false
  socket.on('data', (bytes) => {
    text += bytes
  })
  socket.on('close', () => {
    isClosed = true
  })
  const listen = () => socket.write('GET /api/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')
  listen()
  await until(() => text.includes('event: hello'))
  expect((await reload(server)).exitCode).toBe(0)
  await until(() => text.endsWith('\r\n0\r\n\r\n'))
  text = ''
  listen()
  await until(() => isClosed)
  expect(text).toContain('event: hello')
}, 90_000)

test('systemd is notified when the server is ready, reloads and stops', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'notify-')), 'socket')
  cleanUps.push(() => rmSync(join(path, '..'), { recursive: true }))
  const listen = `import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(sys.argv[1]); print('bound', flush=True)
while True: print(s.recv(4096).decode(), flush=True)`
  const listener = Bun.spawn(['python3', '-c', listen, path], { stdout: 'pipe' })
  cleanUps.push(() => listener.kill())
  let said = ''
  void (async () => {
    for await (const chunk of listener.stdout) said += new TextDecoder().decode(chunk)
  })()
  await until(() => said.includes('bound'))
  await using server = await spawnServer({ env: { NOTIFY_SOCKET: path } })
  await until(() => said.includes('READY=1'))
  expect((await reload(server)).exitCode).toBe(0)
  expect(await server.stop()).toBe(0)
  await until(() => said.includes('STOPPING=1'))
  expect(said.trim().split('\n')).toEqual(['bound', 'READY=1', 'RELOADING=1', 'READY=1', 'STOPPING=1'])
}, 60_000)
