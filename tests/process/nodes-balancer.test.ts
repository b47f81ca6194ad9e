/** docs/scaling.md: its configurations in the real nginx and Caddy, in front of two nodes. */
import { afterAll, expect, test } from 'bun:test'
import { CADDY, ensureProgram, NGINX } from '../../scripts/programs.ts'
import { codexBody } from '../support/app.ts'
import { MAY_SKIP } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { answers } from '../support/upstream/script.ts'
import { outputOf, startNodes, stopPostgres } from './nodes-world.ts'
import { startNodesCaddy, startNodesNginx } from './reverse-proxies-servers.ts'

afterAll(stopPostgres)

const PROGRAMS = [
  ['nginx', await ensureProgram(NGINX), startNodesNginx],
  ['Caddy', await ensureProgram(CADDY), startNodesCaddy],
] as const
const MAY_SKIP_PROXIES = MAY_SKIP || (PROGRAMS.some(([, path]) => !path) && process.env.CI !== 'true')

test.skipIf(MAY_SKIP_PROXIES).each(PROGRAMS)(
  '%s serves on while a node stops',
  async (_, program, start) => {
    await using world = await startNodes({
      nodes: 2,
      env: { SLUICE_FIREWALL_TRUST_PROXY_HEADERS: 'true', SLUICE_PUBLIC_URL: 'https://llm.example.com' },
    })
    const { servers, sim, key } = world
    await sim.answer(answers.bulk(3, 20))
    await using proxy = await start(
      program!,
      servers.map(({ port }) => port),
    )
    const ask = async (conversation?: string) => {
      const response = await fetch(`https://127.0.0.1:${proxy.port}/backend-api/codex/responses`, {
        method: 'POST',
        tls: { rejectUnauthorized: false, serverName: 'llm.example.com' },
        headers: {
          host: 'llm.example.com',
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(conversation && { 'session-id': conversation }),
        },
        body: JSON.stringify(codexBody()),
      })
      return `${response.status} ${(await response.text()).includes('response.completed')}`
    }
    await until(
      async () => (await ask()) === '200 true',
      () => outputOf(world),
    ) // the health is known
    const stopped = servers[0]!.stop()
    let isOver = false
    const seen = new Set<string>()
    const asking = Promise.all(
      ['one', 'two', 'three', 'four', 'five', 'six', undefined].map(async (conversation) => {
        while (!isOver) seen.add(await ask(conversation))
      }),
    )
    expect(await stopped).toBe(0)
    await until(async () => (await ask()) === '200 true')
    isOver = true
    await asking
    expect([...seen]).toEqual(['200 true'])
  },
  180_000,
)
