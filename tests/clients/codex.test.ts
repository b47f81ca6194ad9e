/** The real Codex CLI through Sluice without failures: what the user sees, and what the upstream gets. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { until } from '../support/until.ts'
import { unsignedJwt } from '../support/upstream/tokens.ts'
import { type Codex, installCodex } from './support/codex.ts'
import { getItems, startWorld, type World } from './support/world.ts'

const GREETING = /^Hello from account-\d@example\.test$/

// Longer than the CLI's timeout, so that a hang is reported with its output.
setDefaultTimeout(120_000)

let world: World

beforeAll(async () => {
  // A conversation that stays on its account does so against this strategy, not by its grace.
  world = await startWorld({ settings: { routingStrategy: 'round_robin' } })
})

afterAll(() => world[Symbol.asyncDispose]())

afterEach(() => {
  const { oddities } = world.upstream
  const seen = [...oddities]
  world.upstream.reset()
  expect(seen).toEqual([])
})

const codexWith = (options: Partial<Parameters<typeof installCodex>[0]> = {}): Codex =>
  installCodex({ baseUrl: `${world.url}/backend-api/codex`, auth: { key: world.key }, ...options })

describe('with an API key', () => {
  test('a prompt gets a plain answer with one request', async () => {
    await using codex = codexWith()
    const run = await codex.exec('hello')
    expect(run).toMatchObject({ exitCode: 0, complaints: [] })
    expect(run.events.at(-1)).toMatchObject({ type: 'turn.completed', usage: { output_tokens: 14 } })
    expect(world.turns()).toMatchObject([{ status: 200, finished: true, aborted: false }])
    expect(run.text).toBe(`Hello from ${world.accountsUsed()[0]}`)
    expect(getItems(world.turns()[0]).some((item) => JSON.stringify(item).includes('hello'))).toBe(true)
    expect(codex.sideCalls).toEqual([])
  })

  test.each([
    ['responses-lite', 'gpt-6.1-sol', 'custom_tool_call_output'],
    ['classic', 'gpt-5.5', 'function_call_output'],
  ])(
    'a command runs and its output reaches the model (%s)',
    async (_shape, model, outputType) => {
      await using codex = codexWith({ model })
      const run = await codex.exec('run: echo ping-$((40 + 2))')
      expect(run).toMatchObject({ exitCode: 0, complaints: [] })
      expect(run.events).toContainEqual(
        expect.objectContaining({
          type: 'item.completed',
          item: expect.objectContaining({ type: 'command_execution', aggregated_output: 'ping-42\n', exit_code: 0 }),
        }),
      )
      expect(run.text).toStartWith('The tool said: ')
      expect(run.text).toContain('ping-42')

      const [first, second] = world.turns()
      expect(world.turns()).toHaveLength(2)
      expect(second?.account).toBe(first?.account ?? '')
      expect(second?.headers['x-codex-turn-state']).toStartWith(`ts.${first?.account}.`)
      expect(getItems(second).at(-1)?.type).toBe(outputType)
      expect(JSON.stringify(getItems(second).at(-1)?.output)).toContain('ping-42')
    },
    120_000,
  )

  test('a resumed conversation replays its history on the account where it began', async () => {
    await using codex = codexWith()
    const first = await codex.exec('hello')
    const other = await codex.exec('hello from another conversation')
    const resumed = await codex.resume(first.threadId, 'and again')
    expect(resumed).toMatchObject({ exitCode: 0, complaints: [], threadId: first.threadId, text: first.text })

    const [owner, stranger, ownerAgain] = world.accountsUsed()
    expect(stranger).not.toBe(owner ?? '')
    expect(ownerAgain).toBe(owner ?? '')
    expect(other.text).toBe(`Hello from ${stranger}`)
    const replayed = getItems(world.turns()[2]).map(({ type }) => type)
    expect(replayed.slice(-3)).toEqual(['reasoning', 'message', 'message'])
    expect(JSON.stringify(getItems(world.turns()[2]))).toContain(first.text)
  })

  test('the catalog of the pool is listed', async () => {
    await using codex = codexWith({ listsModels: true })
    const slugs = await codex.listModels()
    // Without gpt-6-astra, which is for plans that no account of this pool has.
    expect(slugs.toSorted()).toEqual(['codex-auto-review', 'gpt-5.5', 'gpt-6-luna', 'gpt-6.1-sol', 'gpt-6.1-terra'])
    expect(codex.sideCalls).toEqual([])
  })

  test('a killed client leaves no open upstream stream', async () => {
    for (const account of world.upstream.accounts) account.next({ silence: { afterEvents: 10 } })
    await using codex = codexWith()
    const started = codex.start('hello')
    await until(() => world.turns()[0]?.eventsSent === 10, world.output)
    await started.kill()
    await until(() => world.upstream.openStreams === 0, world.output)
    expect(world.turns()).toMatchObject([{ eventsSent: 10, aborted: true, finished: false }])
  })
})

test('without key authentication a ChatGPT login suffices, and its token is not forwarded', async () => {
  await world.api('PATCH', '/api/settings', { apiKeyAuthEnabled: false })
  const login = chatGptLogin()
  await using codex = codexWith({ auth: { chatGptLogin: login.authJson } })
  const run = await codex.exec('hello')
  await world.api('PATCH', '/api/settings', { apiKeyAuthEnabled: true })

  expect(run).toMatchObject({ exitCode: 0, complaints: [] })
  expect(run.text).toMatch(GREETING)
  expect(codex.cachedModels()).toContain('gpt-6.1-terra')
  expect(world.turns()).toMatchObject([{ status: 200, finished: true }])
  for (const { headers, account } of world.upstream.requests) {
    expect(headers.authorization).not.toContain(login.accessToken)
    expect(headers['chatgpt-account-id']).toBe(account ?? '')
  }
  expect(codex.sideCalls.filter((call) => !call.startsWith('GET /backend-api/wham/'))).toEqual([])
})

/** The login of a user whose account is not in the pool. */
function chatGptLogin(): { authJson: string; accessToken: string } {
  const expiresAt = Math.floor(Date.now() / 1000) + 864_000
  const claims = {
    sub: 'auth0|user-visitor',
    exp: expiresAt,
    email: 'visitor@example.test',
    'https://api.openai.com/auth': {
      chatgpt_account_id: 'visitor0-0000-4000-8000-000000000000',
      chatgpt_plan_type: 'plus',
      chatgpt_user_id: 'user-visitor',
      user_id: 'user-visitor',
    },
  }
  const accessToken = unsignedJwt({ ...claims, aud: ['https://api.openai.com/v1'] })
  const tokens = {
    id_token: unsignedJwt({ ...claims, aud: ['app'] }),
    access_token: accessToken,
    refresh_token: 'rt_visitor',
    account_id: 'visitor0-0000-4000-8000-000000000000',
  }
  const last_refresh = new Date().toISOString()
  return { accessToken, authJson: JSON.stringify({ auth_mode: 'chatgpt', OPENAI_API_KEY: null, tokens, last_refresh }) }
}
