/**
 * SIGTERM with socket clients: idle ones are closed, busy ones served or given an error, and they reconnect
 * afterwards.
 */
import { expect, test } from 'bun:test'
import { codexBody } from '../support/app.ts'
import { connectSocket, SocketRefused, type TestSocket } from '../support/socket-client.ts'
import { spawnServer } from '../support/spawn.ts'
import { answers } from '../support/upstream/script.ts'
import { expectTotalsMatchRows, loggedRequests } from './books.ts'
import { isTerminal, startWorld } from './world.ts'

const NATIVE = '/backend-api/codex/responses'
const RESTARTING = 1012

const create = () => ({ type: 'response.create', ...codexBody() })
const getEnds = ({ events }: TestSocket) => events.filter(isTerminal).map(({ type }) => type)

test('draining with sockets', async () => {
  await using world = await startWorld({
    settings: ['proxyAccountStreamLimit=0'],
    limits: ['total_tokens:monthly:100m', 'requests:monthly:100m'],
    env: { CODEX_LB_SHUTDOWN_DRAIN_SECONDS: '3' },
  })
  const { sim, key, server, spawn } = world
  const open = (kind: string, url = server.url) =>
    connectSocket(url + NATIVE, {
      headers: { authorization: `Bearer ${key}`, 'x-request-id': kind, 'user-agent': 'test' },
    })
  const busy = async (kind: string) => {
    const socket = await open(kind)
    socket.send(create())
    await socket.next(({ type }) => type === 'response.output_text.delta')
    return socket
  }
  const idle = await open('idle')
  const used = await open('used')
  await used.turn(create())
  await sim.answer(answers.bulk(1000, 20, { dripMs: 50 }))
  const long = await busy('long')
  await sim.answer(answers.bulk(20, 20, { dripMs: 20 }))
  const short = await busy('short')

  const stopping = server.stop()
  expect([(await idle.closed).code, (await used.closed).code]).toEqual([RESTARTING, RESTARTING])

  const refusal = await open('late').catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(SocketRefused)
  expect(refusal).toMatchObject({ status: 503, headers: { 'retry-after': expect.stringMatching(/^\d+$/) } })

  expect((await short.closed).code).toBe(RESTARTING)
  expect(getEnds(short)).toEqual(['response.completed'])
  expect((await long.closed).code).toBe(RESTARTING)
  expect(getEnds(long)).toEqual(['response.failed'])
  expect(long.events.at(-1)).toMatchObject({ response: { error: { code: 'draining' } } })
  expect(await stopping).toBe(0)

  const endings = loggedRequests(spawn.dataDir).map(({ status, errorCode }) => errorCode ?? status)
  expect(endings.toSorted()).toEqual(['draining', 'ok', 'ok'])
  expectTotalsMatchRows(spawn.dataDir)

  await using again = await spawnServer(spawn)
  const back = await open('back', again.url)
  expect((await back.turn(create())).at(-1)?.type).toBe('response.completed')
  back.terminate()
  expect(await sim.look('oddities')).toEqual([])
}, 120_000)

test('a client that does not answer the close delays no one', async () => {
  await using world = await startWorld({ accounts: 0 })
  const headers = { authorization: `Bearer ${world.key}` }
  const deaf = await connectSocket(world.server.url + NATIVE, { headers })
  deaf.pause()
  const began = performance.now()
  expect(await world.server.stop()).toBe(0)
  expect(performance.now() - began).toBeLessThan(20_000) // it would take the 30 s of the drain
  deaf.terminate()
}, 120_000)
