/** docs/scaling.md: its configurations in the real HAProxy, nginx and Caddy, in front of two nodes. */
import { afterAll, describe, expect, test } from 'bun:test'
import { CADDY, ensureProgram, HAPROXY, NGINX } from '../../scripts/programs.ts'
import { codexBody } from '../support/app.ts'
import { MAY_SKIP } from '../support/postgres.ts'
import { connectSocket } from '../support/socket-client.ts'
import type { RunningServer } from '../support/spawn.ts'
import { until } from '../support/until.ts'
import { answers } from '../support/upstream/script.ts'
import { type Nodes, outputOf, startNodes, stopPostgres } from './nodes-world.ts'
import { type ProxyServer, startNodesCaddy, startNodesHaproxy, startNodesNginx } from './reverse-proxies-servers.ts'

afterAll(stopPostgres)

const PROGRAMS = [
  ['HAProxy', await ensureProgram(HAPROXY), startNodesHaproxy, 'http'],
  ['nginx', await ensureProgram(NGINX), startNodesNginx, 'https'],
  ['Caddy', await ensureProgram(CADDY), startNodesCaddy, 'https'],
] as const
const MISSING = PROGRAMS.flatMap(([name, path]) => (path ? [] : [name]))
if (MISSING.length > 0) console.log(`note: load balancers are NOT TESTED without ${MISSING.join(', ')}`)

const NATIVE = '/backend-api/codex/responses'
const HOST = 'llm.example.com'

const startTwoNodes = async (): Promise<Nodes> => {
  const world = await startNodes({
    nodes: 2,
    settings: ['proxyAccountStreamLimit=0'],
    env: { SLUICE_FIREWALL_TRUST_PROXY_HEADERS: 'true', SLUICE_PUBLIC_URL: `https://${HOST}` },
  })
  await world.sim.answer(answers.bulk(3, 20))
  return world
}

/** How many requests the node has served. */
const countRequests = async ({ url }: Pick<RunningServer, 'url'>): Promise<number> => {
  const metrics = await (await fetch(`${url}/metrics`)).text()
  return [...metrics.matchAll(/^sluice_requests_total\{.*\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0)
}

describe.skipIf(MAY_SKIP).each(PROGRAMS)('%s', (name, program, start, scheme) => {
  const onMachine = test.skipIf(!program && process.env.CI !== 'true')
  const inFront = (world: Nodes): Promise<ProxyServer> =>
    start(
      program!,
      world.servers.map(({ port }) => port),
    )

  /** Sends a request, and says how it was answered. */
  const ask = async ({ key }: Nodes, { port }: ProxyServer, conversation?: string): Promise<string> => {
    const response = await fetch(`${scheme}://127.0.0.1:${port}${NATIVE}`, {
      method: 'POST',
      ...(scheme === 'https' && { tls: { rejectUnauthorized: false, serverName: HOST } }),
      headers: {
        host: HOST,
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(conversation && { 'session-id': conversation }),
      },
      body: JSON.stringify(codexBody()),
    })
    return `${response.status} ${(await response.text()).includes('response.completed')}`
  }
  const CONVERSATIONS = ['one', 'two', 'three', 'four', 'five', 'six', undefined]

  onMachine(
    'serves on while a node stops',
    async () => {
      await using world = await startTwoNodes()
      await using proxy = await inFront(world)
      await until(
        async () => (await ask(world, proxy)) === '200 true',
        () => outputOf(world),
      ) // the health is known
      const stopped = world.servers[0]!.stop()
      let isOver = false
      const seen = new Set<string>()
      const asking = Promise.all(
        CONVERSATIONS.map(async (conversation) => {
          while (!isOver) seen.add(await ask(world, proxy, conversation))
        }),
      )
      expect(await stopped).toBe(0)
      await until(async () => (await ask(world, proxy)) === '200 true')
      isOver = true
      await asking
      expect([...seen]).toEqual(['200 true'])
    },
    180_000,
  )

  onMachine(
    'serves the conversations of a node that was killed',
    async () => {
      await using world = await startTwoNodes()
      await using proxy = await inFront(world)
      await until(
        async () => (await ask(world, proxy)) === '200 true',
        () => outputOf(world),
      )
      const served = () => Promise.all(world.servers.map(countRequests))
      const before = await served()
      let node = -1
      await until(async () => {
        await ask(world, proxy, 'one')
        node = (await served()).findIndex((count, index) => count >= before[index]! + 2)
        return node !== -1
      })
      await world.servers[node]!.kill()
      // Caddy does not repeat a POST that it sent on a kept connection.
      if (name === 'Caddy') await until(async () => (await ask(world, proxy, 'one')) === '200 true')
      const seen = await Promise.all(CONVERSATIONS.map((conversation) => ask(world, proxy, conversation)))
      expect(new Set(seen)).toEqual(new Set(['200 true']))
    },
    180_000,
  )
})

test.skipIf(MAY_SKIP || (!PROGRAMS[0][1] && process.env.CI !== 'true'))(
  'HAProxy passes sockets on, also while a node stops and afterwards',
  async () => {
    await using world = await startTwoNodes()
    const { servers, key } = world
    await using proxy = await startNodesHaproxy(
      PROGRAMS[0][1]!,
      servers.map(({ port }) => port),
    )
    const headers = { host: HOST, authorization: `Bearer ${key}` }
    const CONVERSATIONS = ['one', 'two', 'three', 'four']
    const turn = async (conversation: string) => {
      const socket = await connectSocket(`http://127.0.0.1:${proxy.port}${NATIVE}`, {
        headers: { ...headers, 'session-id': conversation },
      })
      const events = await socket.turn({ type: 'response.create', ...codexBody() })
      return { socket, last: events.at(-1)?.type }
    }
    const COMPLETED = new Set(['response.completed'])
    const opened = await Promise.all(CONVERSATIONS.map(turn))
    expect(new Set(opened.map(({ last }) => last))).toEqual(COMPLETED)
    let isOver = false
    const stopped = world.servers[0]!.stop().finally(() => {
      isOver = true
    })
    const seen = new Set<unknown>()
    const turns = CONVERSATIONS.map(async (conversation) => {
      for (let isLast = false; !isLast; ) {
        isLast = isOver
        const { socket, last } = await turn(conversation)
        seen.add(last)
        socket.terminate()
      }
    })
    await Promise.all(turns)
    expect(await stopped).toBe(0)
    expect(seen).toEqual(COMPLETED)
    for (const { socket } of opened) socket.terminate()
  },
  180_000,
)
