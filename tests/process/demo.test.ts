/** `npm run demo` as a newcomer meets it: it starts, what it prints works as printed, and it leaves nothing behind. */
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dir, '../..')

describe('the demo', () => {
  test('prints a command that streams an answer, and settings and a dashboard that fit it', async () => {
    await using demo = await startDemo()
    const curl = printed(demo.output(), /^ {2}(curl .+)$/m)
    const { stdout, exitCode } = Bun.spawnSync(['sh', '-c', curl])
    expect(exitCode).toBe(0)
    const answer = stdout.toString()
    expect(answer).toContain('event: response.output_text.delta')
    expect(answer).toContain('event: response.completed')

    const page = await fetch(printed(demo.output(), /Dashboard {2}(\S+)/), { headers: { accept: 'text/html' } })
    const html = await page.text()
    for (const email of ['ada@example.test', 'grace@example.test', 'alan@example.test']) expect(html).toContain(email)

    const base = printed(demo.output(), /OPENAI_BASE_URL=(\S+)/)
    const key = printed(demo.output(), /OPENAI_API_KEY=(\S+)/)
    const models = await fetch(`${base}/models`, { headers: { authorization: `Bearer ${key}` } })
    expect(await models.json()).toMatchObject({ object: 'list', data: expect.any(Array) })
    const { status } = await fetch(`${base}/models`)
    expect(status).toBe(401)

    const config = Bun.TOML.parse(printed(demo.output(), /(^ {2}model = [\s\S]+?)\n\nIn the shell/m))
    expect(config).toMatchObject({ model_providers: { sluice: { wire_api: 'responses', env_key: 'SLUICE_API_KEY' } } })
  })

  test('removes its folder when it is told to stop', async () => {
    await using demo = await startDemo()
    expect(readdirSync(demo.tmp)).toHaveLength(1)
    expect(await demo.stop()).toBe(0)
    expect(readdirSync(demo.tmp)).toEqual([])
  })
})

interface Demo extends AsyncDisposable {
  output(): string
  /** Where it makes its folder. */
  tmp: string
  /** SIGINT, as Ctrl-C sends it; the exit code. */
  stop(): Promise<number>
}

async function startDemo(): Promise<Demo> {
  const tmp = mkdtempSync(join(tmpdir(), 'sluice-demo-test-'))
  const child = Bun.spawn([process.execPath, 'scripts/demo.ts', '--port', '0'], {
    cwd: ROOT,
    env: { PATH: process.env.PATH ?? '', TMPDIR: tmp },
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
