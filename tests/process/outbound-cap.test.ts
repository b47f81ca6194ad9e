/** Runtime flags set at the start, such as the limit of 256 parallel fetches above which Bun queues silently. */
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { codexBody } from '../support/app.ts'
import { spawnServer, untilGreeted } from '../support/spawn.ts'
import { answers } from '../support/upstream/script.ts'
import { startWorld } from './world.ts'

const MORE_THAN_THE_CAP = 300

test('more parallel requests than the runtime allows all reach the upstream', async () => {
  await using world = await startWorld({ settings: ['proxyAccountStreamLimit=0'], isBusy: true })
  const { sim, key, server } = world
  await sim.answer(answers.bulk(1000, 20, { dripMs: 100 }))
  const request = turnOver(server.port, key)
  // Plain sockets: this process has the same cap on its own fetch.
  const sockets = await Promise.all(Array.from({ length: MORE_THAN_THE_CAP }, () => answeredBy(server.port, request)))
  const { openStreams } = await sim.look<{ openStreams: number }>('stats')
  for (const { socket } of sockets) socket.destroy()
  expect(openStreams).toBe(MORE_THAN_THE_CAP)
}, 120_000)

test('runtime limits are set at the start, the user’s own values and flags are kept, and pages work in any folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-elsewhere-'))
  const command = [process.execPath, '--smol', resolve(import.meta.dir, '../../src/main.ts')]
  try {
    const tells = { MIMALLOC_VERBOSE: '1', BUN_JSC_dumpOptions: '1' }
    const env = { ...tells, BUN_CONFIG_MAX_HTTP_REQUESTS: '300' }
    await using server = await spawnServer({ command, cwd: folder, env })
    expect(readFileSync(`/proc/${server.pid}/environ`, 'utf8')).toContain('BUN_CONFIG_MAX_HTTP_REQUESTS=300\0')
    expect(readFileSync(`/proc/${server.pid}/cmdline`, 'utf8')).toContain('\0--smol\0')
    await untilGreeted(server)
    expect(server.output()).toContain(`option 'purge_holes_min_interval': 1000`)
    expect(server.output()).toContain('forceCodeBlockLiveness=true')
    const page = await fetch(`${server.url}/dashboard`, { headers: { accept: 'text/html' } })
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<!DOCTYPE html>')])
  } finally {
    rmSync(folder, { recursive: true })
  }
}, 120_000)

test.each(['', 'many', '70000'])(
  'an invalid request limit of the runtime, %p, is ignored',
  async (cap) => {
    await using server = await spawnServer({ env: { BUN_CONFIG_MAX_HTTP_REQUESTS: cap } })
    expect(readFileSync(`/proc/${server.pid}/environ`, 'utf8')).toContain('BUN_CONFIG_MAX_HTTP_REQUESTS=16384\0')
  },
  120_000,
)

test.each(['--cwd=..', '--'])(
  'with the flag %p it starts, in the intended folder',
  async (flag) => {
    const src = resolve(import.meta.dir, '../../src')
    const command = [process.execPath, flag, flag === '--' ? 'main.ts' : 'src/main.ts']
    await using server = await spawnServer({ command, cwd: src })
    expect(readlinkSync(`/proc/${server.pid}/cwd`)).toBe(flag === '--' ? src : resolve(src, '..'))
  },
  120_000,
)

test('no more requests are admitted than fit under the user’s limit; the rest are asked to retry', async () => {
  await using world = await startWorld({
    settings: ['proxyAccountStreamLimit=0'],
    env: { BUN_CONFIG_MAX_HTTP_REQUESTS: '8' },
  })
  const { sim, key, server } = world
  await sim.answer(answers.bulk(1000, 20, { dripMs: 100 }))
  const request = turnOver(server.port, key)
  const held: Socket[] = []
  for (let turn = 0; turn < 6; turn++) held.push((await answeredBy(server.port, request)).socket)
  const seventh = await answeredBy(server.port, request)
  for (const socket of [...held, seventh.socket]) socket.destroy()
  expect(seventh.head).toStartWith('HTTP/1.1 503')
  expect(seventh.head).toContain('"busy"')
}, 120_000)

/** A request of the native client in wire format. */
const turnOver = (port: number, key: string): string => {
  const body = JSON.stringify(codexBody())
  return [
    'POST /backend-api/codex/responses HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
}

/** Resolves at the first bytes of the answer. */
const answeredBy = (port: number, request: string): Promise<{ socket: Socket; head: string }> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request))
    socket.once('data', (bytes) => resolve({ socket, head: bytes.toString() }))
    socket.once('error', reject)
  })
