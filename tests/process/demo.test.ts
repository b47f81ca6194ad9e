/** `npm run demo`: it starts, its printed commands work, and it leaves nothing behind. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { readOptions } from '../../scripts/demo/options.ts'
import { DEMO_ACCOUNTS } from '../../scripts/demo/pool.ts'
import { freePort } from '../support/free-port.ts'

const ROOT = resolve(import.meta.dir, '../..')
/** Fewer than usual, to be faster. */
const REQUESTS = 200

describe('the demo', () => {
  let demo: Demo

  beforeAll(async () => {
    demo = await startDemo()
  })

  afterAll(() => demo?.[Symbol.asyncDispose]())

  test('prints a command that streams an answer, and settings that fit it', async () => {
    const curl = printed(demo.output(), /^ {2}(curl .+)$/m)
    const { stdout, exitCode } = Bun.spawnSync(['sh', '-c', curl])
    expect(exitCode).toBe(0)
    const answer = stdout.toString()
    expect(answer).toContain('event: response.output_text.delta')
    expect(answer).toContain('event: response.completed')

    const base = printed(demo.output(), /OPENAI_BASE_URL=(\S+)/)
    const key = printed(demo.output(), /OPENAI_API_KEY=(\S+)/)
    const models = await fetch(`${base}/models`, { headers: { authorization: `Bearer ${key}` } })
    expect(await models.json()).toMatchObject({ object: 'list', data: expect.any(Array) })
    const { status } = await fetch(`${base}/models`)
    expect(status).toBe(401)

    const config = Bun.TOML.parse(printed(demo.output(), /(^ {2}model = [\s\S]+?)\n\n\S/m))
    expect(config).toMatchObject({ model_providers: { sluice: { wire_api: 'responses', env_key: 'SLUICE_API_KEY' } } })
  })

  test('signs a browser in by its link, to a dashboard with the seven accounts and the week', async () => {
    const link = printed(demo.output(), /Open {7}(\S+)/)
    const dashboard = printed(demo.output(), /Dashboard {2}(\S+)/)
    const signedIn = await fetch(link, { redirect: 'manual' })
    expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, dashboard])
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const getPage = async (url: string) => (await fetch(url, { headers: { accept: 'text/html', cookie } })).text()
    const accounts = await getPage(dashboard.replace('/dashboard', '/accounts'))
    for (const { email } of DEMO_ACCOUNTS) expect(accounts).toContain(email)
    const logs = await fetch(dashboard.replace('/dashboard', '/api/request-logs?limit=1'), {
      headers: { accept: 'application/json', cookie },
    })
    const { total } = (await logs.json()) as { total: number } // as: the API's answer
    expect(total).toBeGreaterThanOrEqual(REQUESTS)

    const others = await Promise.all([link.slice(0, -1), new URL('/', link).href].map((url) => fetch(url)))
    expect(others.map(({ status }) => status)).toEqual([404, 404])
    const stranger = await fetch(dashboard, { redirect: 'manual', headers: { accept: 'text/html' } })
    expect(stranger.headers.get('location')).toContain('/login')
  })

  test('listens on PORT, and removes its folder when it is stopped', async () => {
    const port = String(freePort())
    await using demo = await startDemo({ args: ['--requests', '10'], env: { PORT: port } })
    expect(printed(demo.output(), /Dashboard {2}(\S+)/)).toBe(`http://127.0.0.1:${port}/dashboard`)
    expect(readdirSync(demo.tmp)).toHaveLength(1)
    expect(await demo.stop()).toBe(0)
    expect(readdirSync(demo.tmp)).toEqual([])
  })

  test.each([
    { args: ['--seed', 'tuesday'], says: '--seed must be a whole number' },
    { args: ['--seed=-1'], says: '--seed must be a whole number' },
    { args: ['--seed', '99999999999'], says: '--seed must be a whole number' },
    { args: ['--port', '70000'], says: '--port must be a whole number' },
    { args: ['--seed', '-5'], says: '--seed must be a whole number from 0 to 4294967295, not "-5".' },
    { args: ['--port', '-1', '--no-traffic'], says: '--port must be a whole number from 0 to 65535, not "-1".' },
    { args: ['--seed', '--port', '0'], says: '--seed needs a value.' },
    { args: ['--requests'], says: '--requests needs a value.' },
    { args: ['--sed', '1'], says: "Unknown option '--sed'" },
  ])('rejects $args', ({ args, says }) => {
    expect(() => readOptions(args, {})).toThrow(says)
  })

  test('ends with a message and leaves nothing behind if an option is rejected', () => {
    const tmp = mkdtempSync(join(tmpdir(), 'sluice-demo-test-'))
    const env = { PATH: process.env.PATH ?? '', TMPDIR: tmp }
    const command = [process.execPath, 'scripts/demo.ts', '--seed', '--port', '0']
    const { exitCode, stderr } = Bun.spawnSync(command, { cwd: ROOT, env })
    expect([exitCode, readdirSync(tmp)]).toEqual([2, []])
    expect(stderr.toString()).toContain('sluice demo: --seed needs a value.\n\nStart Sluice')
    rmSync(tmp, { recursive: true, force: true })
  })
})

interface StartOptions {
  args?: string[]
  env?: Record<string, string>
}

interface Demo extends AsyncDisposable {
  output(): string
  /** Where it creates its folder. */
  tmp: string
  /** SIGINT, as Ctrl-C sends it; the exit code. */
  stop(): Promise<number>
}

async function startDemo({
  args = ['--port', '0', '--requests', String(REQUESTS)],
  env = {},
}: StartOptions = {}): Promise<Demo> {
  const tmp = mkdtempSync(join(tmpdir(), 'sluice-demo-test-'))
  const child = Bun.spawn([process.execPath, 'scripts/demo.ts', ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH ?? '', TMPDIR: tmp, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const stop = async () => {
    child.kill('SIGINT')
    return child.exited
  }
  const reader = child.stdout.getReader()
  const decoder = new TextDecoder()
  let text = ''
  while (!text.includes('Ctrl-C')) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`The demo ended with ${await child.exited} before it was ready.\n${text}`)
    text += decoder.decode(value, { stream: true })
  }
  return {
    output: () => text,
    tmp,
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
      rmSync(tmp, { recursive: true, force: true })
    },
  }
}

function printed(output: string, pattern: RegExp): string {
  const [, found] = pattern.exec(output) ?? []
  if (found === undefined) throw new Error(`The demo printed nothing like ${pattern}:\n${output}`)
  return found
}
