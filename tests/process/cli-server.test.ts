/** Commands that use a running server and the upstream: status, logs, explain, keys test and accounts add. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { version } from '../../package.json'
import { runInProcess } from '../support/cli.ts'
import { PROGRAM, runCommand } from '../support/spawn.ts'
import { createUpstream } from '../support/upstream/app.ts'
import { answers } from '../support/upstream/script.ts'
import { eventsUntilEnd, sendTurn, startWorld, untilListed, type World } from './world.ts'

/** A command that runs until it is stopped; `shows` resolves with the output once it matches. */
const start = (args: string[], env: Record<string, string>) => {
  const child = Bun.spawn([...PROGRAM, ...args], {
    env: { PATH: process.env.PATH ?? '', HOME: tmpdir(), TZ: 'UTC', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const waiting = new Set<() => void>()
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      output += decoder.decode(chunk, { stream: true })
      for (const look of waiting) look()
    }
  }
  void read(child.stdout)
  void read(child.stderr)
  const shows = (pattern: RegExp): Promise<RegExpExecArray> => {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>()
    const look = () => {
      const found = pattern.exec(output)
      if (found) resolve(found)
    }
    waiting.add(look)
    look()
    void child.exited.then(() => reject(new Error(`It ended without ${pattern}.\n${output}`)))
    return promise
  }
  return { child, shows, output: () => output }
}

describe('beside a running server', () => {
  let world: World
  const sluice = (...args: string[]) => runInProcess(args, { dataDir: world.spawn.dataDir, env: world.server.env })
  const withKey = (key: string, ...args: string[]) => runCommand(args, { env: world.server.env, stdin: `${key}\n` })
  const turn = async (requestId: string) => eventsUntilEnd(await sendTurn(world.server.url, world.key, { requestId }))
  const emails = async () =>
    JSON.parse((await sluice('accounts', 'list', '--json')).stdout).accounts.map(
      ({ email }: { email: string }) => email,
    )

  beforeAll(async () => {
    world = await startWorld({ accounts: 2 })
    await world.sim.answer(answers.text('ok'))
    await turn('req_first')
  }, 120_000)

  afterAll(() => world[Symbol.asyncDispose]())

  test('a key is tested with the secret, which only its owner has', async () => {
    const good = await withKey(world.key, 'keys', 'test', 'test')
    expect([good.exitCode, good.stderr]).toEqual([0, ''])
    expect(good.stdout).toMatch(/^The key "test" works: gpt-\S+ answered from \S+@\S+ in \d+\.\d\d s\.\n$/)
    const unknown = await withKey('sk-clb-nobody-knows-this', 'keys', 'test')
    expect([unknown.exitCode, unknown.stdout]).toEqual([1, ''])
    expect(unknown.stderr).toBe('sluice: There is no such key here. It may have been regenerated or deleted.\n')
    const rejected = await withKey(world.key, 'keys', 'test', '--model', 'gpt-nope', '--json')
    expect(rejected.exitCode).toBe(1)
    expect(JSON.parse(rejected.stdout)).toMatchObject({ keyName: 'test', model: 'gpt-nope', error: expect.any(String) })
  }, 120_000)

  test('keys are edited, regenerated and deleted, and the server applies it within a moment', async () => {
    const { stdout: old } = await sluice('keys', 'create', '--name', 'ci', '--model', 'gpt-5.5')
    const warned = await sluice(
      'keys',
      'edit',
      'ci',
      '--model',
      'gpt-nope',
      '--limit',
      'requests:5h:9',
      '--name',
      'bot',
    )
    expect(warned.stdout).toMatch(/^Changed key "bot" \(sk-clb-\S+…\)\.\n$/)
    expect(warned.stderr).toMatch(/^Warning: no account offers "gpt-nope"\. Available models: .*gpt-5\.5.*\.\n$/)
    const [edited] = JSON.parse((await sluice('keys', 'list', '--json')).stdout)
    expect(edited).toMatchObject({ name: 'bot', allowedModels: ['gpt-nope'], limits: [{ maxValue: 9 }] })
    const opened = await sluice('keys', 'edit', 'bot', '--all-models', '--unlimited', '--json')
    expect(JSON.parse(opened.stdout)).toMatchObject({ allowedModels: null, limits: [] })
    const renewed = await sluice('keys', 'regenerate', 'bot')
    expect(renewed.stdout).toMatch(/^sk-clb-[\w-]{43}\n$/)
    expect(renewed.stdout).not.toBe(old)
    expect(renewed.stderr).toContain('The old one no longer works.')
    expect((await withKey(old, 'keys', 'test', 'bot')).stderr).toContain('There is no such key here.')
    expect((await withKey(world.key, 'keys', 'test', 'bot')).stderr).toContain('This is the key "test", not "bot".')
    expect((await sluice('keys', 'edit', 'bot')).stderr).toContain('Nothing to change.')
    expect((await sluice('keys', 'edit', 'bot', '--limit', 'requests:5h:9', '--unlimited')).exitCode).toBe(2)
    expect((await sluice('keys', 'delete', 'bot')).stdout).toContain('Its requests stay in the log.')
    expect(JSON.parse((await sluice('keys', 'list', '--json')).stdout)).toMatchObject([{ name: 'test' }])
  }, 120_000)

  test('explain names the account a request would use, and why others would not be', async () => {
    const [used, paused] = await emails()
    await sluice('accounts', 'pause', paused)
    const chosen = await sluice('explain', '--model', 'gpt-5.5', '--key', 'test')
    expect(chosen.exitCode).toBe(0)
    expect(chosen.stdout).toStartWith(`${used} would be used.\n\nACCOUNT `)
    expect(chosen.stdout).toMatch(new RegExp(`^${paused} +skipped +paused +-$`, 'm'))
    expect(chosen.stderr).toContain('This uses only the database')
    await sluice('accounts', 'pause', used)
    const none = await sluice('explain', '--json')
    expect([none.exitCode, JSON.parse(none.stdout).outcome]).toEqual([1, 'none'])
    for (const email of [used, paused]) await sluice('accounts', 'resume', email)
    await untilListed(world.server.url, (accounts) => accounts.every(({ status }) => status === 'active'))
    expect((await sluice('explain', '--key', 'nope')).stderr).toContain('There is no key "nope". "sluice keys list"')
  }, 120_000)

  test('logs show past requests, and follow the server', async () => {
    const following = start(['logs', '-f', '--limit', '1'], world.server.env)
    await following.shows(/Waiting for new requests/)
    await turn('req_followed')
    await following.shows(/Waiting for new requests[\s\S]*\n.* ok +gpt-\S+ +test /)
    following.child.kill('SIGINT')
    expect(await following.child.exited).toBe(0)
    expect(following.output().match(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}/gm)?.length).toBe(2)
    const errors = await sluice('logs', '--errors', '--json')
    expect(
      errors.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([{ model: 'gpt-nope', status: 'error' }])
    const { stdout } = await sluice('logs', '--limit', '1', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ requestId: 'req_followed', apiKeyName: 'test', status: 'ok' })
  }, 120_000)

  test('status shows on one screen what runs and what is in the pool', async () => {
    const serving = await sluice('status')
    expect([serving.exitCode, serving.stderr]).toEqual([0, ''])
    expect(serving.stdout).toContain(`Server       Sluice ${version}, serving\n`)
    expect(serving.stdout).toContain(`URL          ${world.server.url}\n`)
    expect(serving.stdout).toMatch(/^Accounts {5}2 accounts\n {13}2 active/m)
    expect(serving.stdout).toContain('Keys         1 active; required\n')
    expect(serving.stdout).toMatch(/^Last hour {4}\d+ requests, \d+ errors?, 0 cancelled, \d+ rejected$/m)
    await sluice('accounts', 'pause', (await emails())[0])
    const { accounts } = JSON.parse((await sluice('status', '--json')).stdout)
    expect(accounts).toMatchObject([
      { status: 'active', count: 1 },
      { status: 'paused', count: 1 },
    ])
    await world.server.stop()
    const stopped = await sluice('status')
    expect(stopped.stdout).toMatch(/^Server +Sluice \S+, not running$/m)
    const test = await withKey(world.key, 'keys', 'test', '--model', 'gpt-5.5')
    expect(test.stderr).toMatch(
      /^sluice: The server at http:\/\/127\.0\.0\.1:\d+ did not answer: .* Start it with "sluice serve"\.\n$/,
    )
  }, 120_000)
})

describe('accounts add', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-cli-add-'))
  const upstream = createUpstream()
  const listening = upstream.listen()
  const env = {
    SLUICE_DATA_DIR: dataDir,
    SLUICE_UPSTREAM_BASE_URL: `${listening.url}/backend-api`,
    SLUICE_AUTH_BASE_URL: listening.url,
  }
  const ada = upstream.addAccount({ email: 'ada@example.test', plan: 'pro' })

  afterAll(async () => {
    await listening.stop()
    rmSync(dataDir, { recursive: true })
  })

  const begin = async () => {
    const adding = start(['accounts', 'add'], env)
    const [, code = ''] = await adding.shows(/^ {2}(WXYZ-\d+)$/m)
    expect(adding.output()).toContain(`\n  ${listening.url}/codex/device\n`)
    expect(adding.output()).toContain('The code expires in 15 min.')
    return { ...adding, code }
  }

  test('shows a page and a code, waits, and adds the account; later it signs in again', async () => {
    for (const says of ['Added ada@example.test (pro).\n', 'Signed in again to ada@example.test (pro).\n']) {
      const { child, code, output } = await begin()
      upstream.signIns.enterCode(code, ada)
      expect(await child.exited).toBe(0)
      expect(output()).toContain(says)
    }
    expect(JSON.parse((await runInProcess(['accounts', 'list', '--json'], { env })).stdout).accounts).toHaveLength(1)
  }, 120_000)

  test('ends with a message when the sign-in is denied or not offered', async () => {
    const { child, code, output } = await begin()
    upstream.signIns.denyCode(code)
    expect(await child.exited).toBe(1)
    expect(output()).toMatch(/\nsluice: The sign-in was .*\n$/)
    upstream.signIns.device.refusesWith = 404
    const refused = await runCommand(['accounts', 'add'], { env })
    upstream.signIns.device.refusesWith = null
    expect([refused.exitCode, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toMatch(/^sluice: .*\n$/)
  }, 120_000)
})

test('the names of lists come first, in natural order', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-cli-order-'))
  try {
    const upstream = createUpstream()
    const files = ['team10', 'team2', 'Team1'].map((name) => {
      const file = join(dataDir, `${name}.json`)
      writeFileSync(file, upstream.addAccount({ email: `${name}@example.test`, plan: 'plus' }).authJson())
      return file
    })
    await runInProcess(['accounts', 'import', ...files], { dataDir })
    const { stdout } = await runInProcess(['accounts', 'list'], { dataDir })
    expect(stdout.split('\n').map((line) => line.split(' ')[0])).toEqual([
      'ACCOUNT',
      'Team1@example.test',
      'team2@example.test',
      'team10@example.test',
      '',
    ])
  } finally {
    rmSync(dataDir, { recursive: true })
  }
})
