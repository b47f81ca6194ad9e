/** The snippets of the dashboard, used unchanged by the real clients. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { codexConfig, KEY_FROM_SHELL, snippets } from '../../views/keys/snippets.ts'
import { getCodeBlocks } from '../support/fenced.ts'
import { PIXEL } from '../support/upstream/relay-routes.ts'
import { getTranscript } from '../support/upstream/transcribe.ts'
import { installCodex } from './support/codex.ts'
import { startWorld, type World } from './support/world.ts'

setDefaultTimeout(120_000)

let world: World

beforeAll(async () => {
  world = await startWorld({ accounts: [{ email: 'ada@example.test' }] })
})

afterAll(() => world[Symbol.asyncDispose]())

afterEach(() => world.upstream.reset())

const GREETING = 'Hello from ada@example.test'

const getTexts = (id: string): string[] => {
  const all = snippets({ baseUrl: world.url, key: world.key, model: 'gpt-5.5' })
  return all.find((snippet) => snippet.id === id)?.parts.map(({ text }) => text) ?? []
}

/** `export NAME=value`, a line each. */
const exported = (text: string): Record<string, string> =>
  Object.fromEntries([...text.matchAll(/^export (\w+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]))

/** Does not block, because the stand-in upstream runs in this process. */
const getOutput = async (command: string[]): Promise<[stdout: string, stderr: string]> => {
  const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'pipe' })
  return Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
}

const codexWith = (config: string, variables: Record<string, string> = {}) =>
  installCodex({ baseUrl: '', auth: { key: 'not this one' }, pasted: { config, variables } })

describe('the Codex CLI', () => {
  test.each([
    ['sockets first', (config: string) => config],
    ['HTTP only', (config: string) => config.replace('supports_websockets = true', 'supports_websockets = false')],
  ])('is served with its configuration unchanged, %s', async (_, variant) => {
    const [config = '', shell = ''] = getTexts('codex')
    await using codex = codexWith(variant(config), exported(shell))
    const run = await codex.exec('hello')
    expect(run).toMatchObject({ exitCode: 0, complaints: [], text: GREETING })
    expect(await codex.listModels()).toContain('gpt-6.1-sol')
  })

  test('compacts a long conversation on the server', async () => {
    const [config = '', shell = ''] = getTexts('codex')
    await using codex = codexWith(
      config.replace('model_provider', 'model_auto_compact_token_limit = 1\nmodel_provider'),
      exported(shell),
    )
    const first = await codex.exec('hello')
    await codex.resume(first.threadId, 'and again')
    const bodies = world.turns().map(({ body }) => JSON.stringify(body))
    expect(bodies.some((body) => body.includes('"compaction_trigger"'))).toBe(true)
  })

  test('starts with the model of the configuration', async () => {
    const [config = '', shell = ''] = getTexts('codex')
    await using codex = codexWith(config, exported(shell))
    expect((await codex.exec('hello')).text).toBe(GREETING)
    expect(JSON.stringify(world.turns()[0]?.body)).toContain('"model":"gpt-5.5"')
  })

  test('and the extension finds the key in the file alone', async () => {
    const [config = ''] = getTexts('ide')
    await using codex = codexWith(config)
    expect(await codex.exec('hello')).toMatchObject({ exitCode: 0, complaints: [], text: GREETING })
  })
})

test('the program for the JavaScript SDK runs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-snippet-'))
  symlinkSync(resolve(import.meta.dir, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'ask.mjs'), getTexts('javascript').at(-1) ?? '')
  const said = await getOutput([process.execPath, join(folder, 'ask.mjs')])
  rmSync(folder, { recursive: true })
  expect(said).toEqual([`${GREETING}\n`, ''])
})

test('the curl command runs', async () => {
  const [command = ''] = getTexts('curl')
  const [said] = await getOutput(['sh', '-c', `${command} -s`])
  expect(JSON.parse(said)).toMatchObject({ object: 'response', status: 'completed' })
})

test('the Python program is valid, and has the same address and key', () => {
  const program = getTexts('python').at(-1) ?? ''
  const { exitCode, stderr } = Bun.spawnSync(['python3', '-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
    stdin: new TextEncoder().encode(program),
  })
  expect([exitCode, stderr.toString()]).toEqual([0, ''])
  expect(program).toContain(`base_url="${world.url}/v1", api_key="${world.key}"`)
})

test('the image command returns an image, and the Python program for it is valid', async () => {
  const [command = '', program = ''] = getTexts('images')
  const asked = command.split(' \\\n  |')[0] ?? ''
  const [answer] = await getOutput(['sh', '-c', `${asked} -s`])
  expect(JSON.parse(answer)).toMatchObject({ data: [{ b64_json: PIXEL }] })
  expect(command).toEndWith("| jq -r '.data[0].b64_json' | base64 -d > image.png")
  const { exitCode } = Bun.spawnSync(['python3', '-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
    stdin: new TextEncoder().encode(program),
  })
  expect(exitCode).toBe(0)
  expect(program).toContain(`base_url="${world.url}/v1", api_key="${world.key}"`)
})

test('the transcription command returns a text, and the Python program for it is valid', async () => {
  const [command = '', program = ''] = getTexts('transcription')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-snippet-'))
  writeFileSync(join(folder, 'speech.mp3'), 'ID3')
  const [answer] = await getOutput(['sh', '-c', `cd ${folder} && ${command} -s`])
  rmSync(folder, { recursive: true })
  expect(JSON.parse(answer)).toEqual({ text: getTranscript('ID3', '') })
  const { exitCode } = Bun.spawnSync(['python3', '-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
    stdin: new TextEncoder().encode(program),
  })
  expect(exitCode).toBe(0)
  expect(program).toContain(`base_url="${world.url}/v1", api_key="${world.key}"`)
})

test('OpenCode gets a JSON document with the address, the key and the model', () => {
  const config: unknown = JSON.parse(getTexts('opencode')[0] ?? '')
  expect(config).toMatchObject({
    model: 'sluice/gpt-5.5',
    small_model: 'sluice/gpt-5.5',
    provider: { sluice: { options: { baseURL: `${world.url}/v1`, apiKey: world.key }, models: { 'gpt-5.5': {} } } },
  })
})

test('docs/clients.md and the README have the same', async () => {
  const baseUrl = 'http://127.0.0.1:2455'
  const manual = await Bun.file(resolve(import.meta.dir, '../../docs/clients.md')).text()
  const all = snippets({ baseUrl, key: 'sk-clb-…', model: 'gpt-5.5' })
  const said = all
    .filter(({ id }) => ['codex', 'python', 'javascript', 'usage', 'curl', 'images', 'transcription'].includes(id))
    .map(({ parts }) => parts)
  const texts = said.flat().flatMap(({ text }) => (text.includes('install openai') ? [] : [text]))
  expect(texts.filter((text) => !manual.includes(text))).toEqual([])
  const readme = await Bun.file(resolve(import.meta.dir, '../../README.md')).text()
  for (const text of [manual, readme]) expect(text).toContain(codexConfig(baseUrl, KEY_FROM_SHELL, 'gpt-5.5'))
  for (const { wrongKey } of all.filter(({ id }) => ['codex', 'python', 'javascript'].includes(id)))
    expect(manual).toContain(wrongKey)
  const [openCode = ''] = all.find(({ id }) => id === 'opencode')?.parts.map(({ text }) => text) ?? []
  const [inManual = ''] = getCodeBlocks('docs/clients.md', 'OpenCode', 'json')
  expect(JSON.parse(inManual)).toEqual(JSON.parse(openCode))
})
