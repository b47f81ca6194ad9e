/** The real OpenCode through Sluice, with only the configuration that the dashboard prints. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { snippets } from '../../views/keys/snippets.ts'
import { until } from '../support/until.ts'
import { faults } from '../support/upstream/faults.ts'
import { answers, getText, isJson, type Json, type Turn } from '../support/upstream/script.ts'
import { hasOpenCode, installOpenCode, type OpenCode, type OpenCodeServer } from './support/opencode.ts'
import { FIRST, SECOND, TWO_ACCOUNTS } from './support/session.ts'
import { getItems, startWorld, type World } from './support/world.ts'

setDefaultTimeout(120_000)

const IN_AN_HOUR_MS = Math.ceil(Date.now() / 1000) * 1000 + 3_600_000

/** Whether it is a request of the conversation, with the tools of the client. */
const offersRead = ({ tools }: Json): boolean => Array.isArray(tools) && tools.some((tool) => tool.name === 'read')

const canRun = hasOpenCode()
if (!canRun) console.log('note: OpenCode is NOT TRIED: there is no build of it for this machine')

describe.skipIf(!canRun && process.env.CI !== 'true')('OpenCode', () => {
  let world: World
  let opencode: OpenCode
  let signedIn: OpenCode
  let server: OpenCodeServer

  beforeAll(async () => {
    world = await startWorld(TWO_ACCOUNTS)
    opencode = installOpenCode()
    signedIn = installOpenCode({ isSignedIn: true })
    server = await signedIn.serve()
  })

  afterAll(async () => {
    await server?.[Symbol.asyncDispose]()
    opencode?.[Symbol.dispose]()
    signedIn?.[Symbol.dispose]()
    await world?.[Symbol.asyncDispose]()
  })

  afterEach(() => {
    const seen = [...world.upstream.oddities]
    world.upstream.reset()
    expect(seen).toEqual([])
  })

  const configFor = ({ key = world.key, model = 'gpt-5.5' } = {}): string => {
    const all = snippets({ baseUrl: world.url, key, model })
    return all.find(({ id }) => id === 'opencode')?.parts[0]?.text ?? ''
  }

  const startSession = (asked: { key?: string; model?: string } = {}) =>
    server.startSession(signedIn.folder(configFor(asked)))

  /** For every request that reached the upstream, once each. */
  const modelsAsked = () => [...new Set(world.turns().map(({ body }) => (isJson(body) ? body.model : null)))]

  test('reads a file, answers and continues the conversation', async () => {
    const folder = opencode.folder(configFor(), { 'poem.txt': 'Roses are red.\n' })
    const arguments_ = JSON.stringify({ filePath: join(folder, 'poem.txt') })
    world.upstream.script(({ body, input }: Turn) => {
      const isAnswered = input.some(({ type }) => type === 'function_call_output')
      if (!offersRead(body) || isAnswered) return null
      return answers.toolCall({ name: 'read', arguments: arguments_ }, { deltaChars: 4 })
    })
    const first = await opencode.run(folder, 'What is in poem.txt?')
    expect(first).toMatchObject({ exitCode: 0, complaints: [], tools: [{ name: 'read' }] })
    expect(first.text).toMatch(/^The tool said: [\s\S]*Roses are red\./)

    const next = await opencode.run(folder, '--continue', 'And who are you?')
    expect(next).toEqual({ exitCode: 0, complaints: [], tools: [], reasoning: '', text: `Hello from ${FIRST.email}` })
    const request = world.turns().findLast(({ body }) => isJson(body) && offersRead(body)) // not the one for a title
    const said = getItems(request).filter(({ role }) => role === 'user')
    expect(said.map(({ content }) => getText(content).replaceAll('"', '').trim())).toEqual([
      'What is in poem.txt?',
      'And who are you?',
    ])
  }, 240_000)

  test('shows the reasoning of the model, over chat too', async () => {
    const config = JSON.parse(configFor())
    const provider = config.provider.sluice
    provider.npm = '@ai-sdk/openai-compatible'
    provider.models['gpt-5.5'].options = { reasoningEffort: 'high' }
    const folder = opencode.folder(JSON.stringify(config))
    const run = await opencode.run(folder, '--thinking', 'hello')
    expect(run).toEqual({
      exitCode: 0,
      complaints: [],
      tools: [],
      reasoning: '**Thinking** it over',
      text: `Hello from ${FIRST.email}`,
    })
  })

  test.each(['gpt-5.5', 'gpt-6.1-sol'])(
    'uses only Sluice and %s, even when signed in, also for titles',
    async (model) => {
      const session = await startSession({ model })
      const hello = { text: `Hello from ${FIRST.email}`, complaint: null }
      expect([await session.say('hello'), await session.say('and again')]).toEqual([hello, hello])
      await until(async () => (await session.title()) === hello.text, world.output)
      expect(modelsAsked()).toEqual([model])
      expect(signedIn.sideCalls.filter((call) => call.includes('chatgpt.com'))).toEqual([])
    },
  )

  test('does not notice an exhausted account', async () => {
    world.upstream.accounts[0]?.always(faults.usageLimit({ resetsAt: IN_AN_HOUR_MS }))
    const session = await startSession()
    expect(await session.say('hello')).toEqual({ text: `Hello from ${SECOND.email}`, complaint: null })
  })

  test('shows that a key is wrong', async () => {
    const session = await startSession({ key: 'sk-clb-wrong' })
    expect(await session.say('hello')).toEqual({ text: '', complaint: 'Invalid API key' })
  })

  // The last one: afterwards the pool is known to be used up.
  test('says when an exhausted pool is available again, and retries in a minute', async () => {
    for (const account of world.upstream.accounts) account.always(faults.usageLimit({ resetsAt: IN_AN_HOUR_MS }))
    const session = await startSession()
    const { message, next } = await session.sayUntilItWaits('hello')
    expect(message).toMatch(/^All accounts have reached their usage limit; it will reset at \d\d:\d\d:\d\d UTC\.$/)
    expect((next - Date.now()) / 1000).toBeWithin(45, 61)
  })
})
