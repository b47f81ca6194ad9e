/** Three nodes behind a balancer are restarted one after the other under load: no request fails. */
import { afterAll, expect, test } from 'bun:test'
import { connect, createServer, type Socket } from 'node:net'
import { codexBody } from '../support/app.ts'
import { freePort } from '../support/free-port.ts'
import { MAY_SKIP } from '../support/postgres.ts'
import { connectSocket } from '../support/socket-client.ts'
import { until } from '../support/until.ts'
import { answers } from '../support/upstream/script.ts'
import { expectPostgresTotalsMatchRows } from './books.ts'
import { type KeptConnection, keepAlive } from './keep-alive.ts'
import { type Nodes, outputOf, startNodes, stopPostgres } from './nodes-world.ts'
import { eventsUntilEnd, isTerminal, sendTurn } from './world.ts'

afterAll(stopPostgres)

const STREAMS = Number(process.env.RESTART_STREAMS ?? 12) // of each transport; more in the soak
const HEALTH_MS = 50

/** Forwards each new connection to a node whose `/health/ready` is 200, in turn. */
const startBalancer = async ({ servers }: Nodes) => {
  const ready = new Set<number>()
  let isOver = false
  let next = 0
  const open = new Set<Socket>()
  const checks = servers.map(async (_, index) => {
    while (!isOver) {
      const status = await fetch(`${servers[index]!.url}/health/ready`, { headers: { connection: 'close' } }).then(
        (answer) => answer.status,
        () => 0,
      )
      if (status === 200) ready.add(index)
      else ready.delete(index)
      await Bun.sleep(HEALTH_MS)
    }
  })
  const server = createServer((client) => {
    const choice = [...ready][next++ % Math.max(1, ready.size)]
    if (choice === undefined) return void client.destroy()
    const node = connect(servers[choice]!.port, '127.0.0.1')
    for (const [from, to] of [
      [client, node],
      [node, client],
    ] as const) {
      open.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        open.delete(from)
        to.destroy()
      })
    }
  })
  const port = freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  await until(() => ready.size === servers.length)
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    ready,
    [Symbol.asyncDispose]: async () => {
      isOver = true
      await Promise.all(checks)
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}

type Balancer = Awaited<ReturnType<typeof startBalancer>>

/**
 * Counts short requests in `seen` until `stop`, on new connections and on kept ones, which a client uses until an answer says that the
 * connection closes. Streams have connections of their own: the answer of one that began before its node was stopped
 * cannot say that, so the next request on it may be rejected.
 */
const shortRequests = ({ url, port }: Balancer, key: string, seen: Record<string, number>) => {
  let isOver = false
  const count = (kind: string, status: unknown, text: string) => {
    const outcome = `${kind} ${text.includes('response.completed') ? status : `${status} ${text}`}`
    seen[outcome] = (seen[outcome] ?? 0) + 1
  }
  const onNew = async () => {
    const response = await sendTurn(url, key, { isAlone: true }).catch((error: unknown) => String(error))
    if (typeof response === 'string') count('new', response, '')
    else count('new', response.status, await response.text().catch(String))
  }
  const connections: KeptConnection[] = []
  const onKept = async (n: number) => {
    connections[n] ??= keepAlive(port)
    const text = await connections[n].turn(key)
    count('kept', text.split(' ')[1], text)
    if (!text.includes('connection: close')) return
    connections[n][Symbol.dispose]()
    delete connections[n]
  }
  const clients = [onNew, onKept, onNew, onKept].map(async (ask, n) => {
    while (!isOver) {
      await ask(n)
      await Bun.sleep(50)
    }
  })
  return {
    stop: async () => {
      isOver = true
      await Promise.all(clients)
      for (const connection of connections) connection?.[Symbol.dispose]()
    },
  }
}

const LONG = answers.bulk(40, 20, { dripMs: 100, isHeld: true, usage: { inputTokens: 100, outputTokens: 20 } })
const SHORT = answers.bulk(3, 20, { usage: { inputTokens: 10, outputTokens: 2 } })

/** Through the balancer, and so on every node. They end after a release. */
const openStreams = async (world: Nodes, { url }: Balancer, name: string) => {
  const { sim, key } = world
  await sim.answer(LONG)
  const numbers = Array.from({ length: STREAMS }, (_, n) => n)
  const long = await Promise.all(
    numbers.map((n) => sendTurn(url, key, { requestId: `http-${name}-${n}`, isAlone: true })),
  )
  expect(long.map(({ status }) => status)).toEqual(long.map(() => 200))
  const ends = long.map(eventsUntilEnd)
  const sockets = await Promise.all(
    numbers.map((n) =>
      connectSocket(`${url}/backend-api/codex/responses`, {
        headers: { authorization: `Bearer ${key}`, 'x-request-id': `socket-${name}-${n}`, 'user-agent': 'test' },
        timeoutMs: 120_000,
      }),
    ),
  )
  const turns = sockets.map((socket) => socket.turn({ type: 'response.create', ...codexBody() }))
  await Promise.all(sockets.map((socket) => socket.next(({ type }) => type === 'response.output_text.delta')))
  return {
    expectComplete: async () => {
      for (const events of await Promise.all([...ends, ...turns]))
        expect(
          events.filter(({ type }) => isTerminal({ type })).map(({ type }) => type),
          outputOf(world),
        ).toEqual(['response.completed'])
    },
  }
}

test.skipIf(MAY_SKIP)(
  `${2 * STREAMS} streams on both transports outlive the restart of each of three nodes`,
  async () => {
    await using world = await startNodes({
      accounts: 4,
      settings: ['proxyAccountStreamLimit=0', 'socketsPerKey=1000', 'socketsPerClient=1000'],
      limits: ['total_tokens:monthly:100m', 'requests:monthly:100m'],
      env: { SLUICE_SHUTDOWN_DRAIN_SECONDS: '120' },
    })
    const { sim, key, servers, sql } = world
    await using balancer = await startBalancer(world)
    const seen: Record<string, number> = {}
    for (const index of servers.keys()) {
      const streams = await openStreams(world, balancer, `${index}`)
      await sim.answer(SHORT)
      const short = shortRequests(balancer, key, seen)
      const stopped = servers[index]!.stop()
      await until(() => !balancer.ready.has(index))
      const { openStreams: open } = await sim.look<{ openStreams: number }>('stats')
      expect(open, outputOf(world)).toBeGreaterThanOrEqual(2 * STREAMS) // and short requests
      await sim.release()
      await streams.expectComplete()
      expect(await stopped).toBe(0)
      await world.start(index)
      await until(() => balancer.ready.has(index))
      await short.stop()
    }
    console.log(`a rolling restart of three nodes, short requests: ${JSON.stringify(seen)}`)
    expect(Object.keys(seen).toSorted(), outputOf(world)).toEqual(['kept 200', 'new 200'])
    for (const server of servers) expect(await server.stop()).toBe(0)
    const rows = await sql.unsafe('SELECT status, count(*)::int AS n FROM requests GROUP BY status')
    const n = servers.length * 2 * STREAMS + seen['kept 200']! + seen['new 200']!
    expect([...rows]).toEqual([{ status: 'ok', n }])
    await expectPostgresTotalsMatchRows(sql)
  },
  600_000,
)
