/** The real Claude Code while something fails: what the user sees, and what reached the upstream. */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { until } from '../support/until.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'
import { answers, getText } from '../support/upstream/script.ts'
import type { ClaudeChat } from './support/claude-chat.ts'
import { hasClaudeCode, installClaudeCode, withClaudeCode } from './support/claude-code.ts'
import { FIRST, getAccounts, SECOND, TWO_ACCOUNTS } from './support/session.ts'
import { getItems, startWorld, type World } from './support/world.ts'

setDefaultTimeout(120_000)

const canRun = hasClaudeCode()
const inAnHour = (): number => Date.now() + 3_600_000

const textOf = (chat: ClaudeChat): string =>
  chat.lines.map(({ event }) => (event?.delta?.type === 'text_delta' ? event.delta.text : '')).join('')

/** What the next message prints, and the accounts that were tried for it. */
const say = async (world: World, chat: ClaudeChat, prompt: string) => {
  const before = world.turns().length
  const { isError, text, kinds, lines } = await chat.say(prompt)
  const retries = lines.filter(({ subtype }) => subtype === 'api_retry').map(({ error_status }) => error_status)
  return { isError, text, kinds, retries, tried: world.accountsUsed().slice(before) }
}

const failAll = (world: World, fault: Fault | null): void => {
  for (const account of world.upstream.accounts) account.always(fault)
}

describe.skipIf(!canRun && process.env.CI !== 'true')('Claude Code', () => {
  test('is interrupted: the stream of the upstream ends, the log says so, and the account is free for the next turn', () =>
    withClaudeCode({ settings: { proxyAccountStreamLimit: '1' } }, async ({ world, claude }) => {
      /** Returns once the user sees the beginning. */
      const startAnswer = async (chat: ClaudeChat, prompt: string) => {
        world.upstream.script(() => answers.bulk(10_000, 10, { dripMs: 5 }))
        const shown = textOf(chat)
        const ended = chat.say(prompt).catch(() => null)
        await until(() => textOf(chat) !== shown)
        expect(world.upstream.openStreams).toBe(1)
        return { ended }
      }
      const expectEnded = async () => {
        await until(() => world.upstream.openStreams === 0)
        expect(world.turns().at(-1)).toMatchObject({ aborted: true, finished: false })
        world.upstream.script(null)
      }
      await using chat = claude.chat('--include-partial-messages')
      await using other = claude.chat()
      expect(await say(world, chat, 'hello')).toMatchObject({ isError: false, tried: [FIRST.email] })

      const running = await startAnswer(chat, 'Tell a long story.')
      chat.interrupt()
      expect((await running.ended)?.kinds.at(-1)).toBe('result/error_during_execution')
      await expectEnded()
      // A lease that was not returned would send these to the second account.
      expect(await say(world, other, 'hello')).toMatchObject({ isError: false, tried: [FIRST.email] })
      expect(await say(world, chat, 'And then?')).toMatchObject({ isError: false, tried: [FIRST.email] })
      const said = getItems(world.turns().at(-1)).map(({ content }) => getText(content))
      expect(said.at(-2)).toMatch(/^x+$/)
      expect(said.at(-1)).toBe('[Request interrupted by user]\nAnd then?')

      await startAnswer(chat, 'Another one.')
      await chat.stop()
      await expectEnded()
      const sessionId = chat.lines[0]?.session_id ?? ''
      const resumed = await claude.run('--resume', sessionId, 'Are you there?')
      expect(resumed).toMatchObject({ exitCode: 0, result: { is_error: false, result: `Hello from ${FIRST.email}` } })

      const statuses = ['ok', 'cancelled', 'ok', 'ok', 'cancelled', 'ok']
      expect(await world.log(6)).toMatchObject(statuses.map((status) => ({ status, attemptCount: 1 })))
    }))

  test('does not notice that an account is used up, before or after the upstream accepted the request', () =>
    withClaudeCode({}, async ({ world, claude }) => {
      const { first, second } = getAccounts(world)
      await using chat = claude.chat()
      const { kinds } = await say(world, chat, 'hello')

      first.next(faults.usageLimit({ resetsAt: inAnHour() }))
      expect(await say(world, chat, 'go on')).toEqual({
        isError: false,
        text: `Hello from ${SECOND.email}`,
        kinds,
        retries: [],
        tried: [FIRST.email, SECOND.email],
      })
      await world.api('POST', '/api/accounts/pause', { accountIds: await idsOf(world) })
      await world.api('POST', '/api/accounts/reactivate', { accountIds: await idsOf(world) })
      second.next({
        failAfterCreated: { code: 'rate_limit_exceeded', message: 'Slow down.', afterEvents: 2 },
      })
      expect(await say(world, chat, 'once more')).toEqual({
        isError: false,
        text: `Hello from ${FIRST.email}`,
        kinds,
        retries: [],
        tried: [SECOND.email, FIRST.email],
      })
      const rows = (await world.log(3)).map(({ accountName, status, httpStatus, attemptCount, movedAccount }) => ({
        accountName,
        status,
        httpStatus,
        attemptCount,
        movedAccount,
      }))
      expect(rows).toEqual([
        { accountName: FIRST.email, status: 'ok', httpStatus: 200, attemptCount: 1, movedAccount: false },
        { accountName: SECOND.email, status: 'ok', httpStatus: 200, attemptCount: 2, movedAccount: true },
        { accountName: FIRST.email, status: 'ok', httpStatus: 200, attemptCount: 2, movedAccount: true },
      ])
    }))

  test('shows that no account is left, and comes back with the first one that can serve', () =>
    withClaudeCode({}, async ({ world, claude }) => {
      await using chat = claude.chat()
      expect(await say(world, chat, 'hello')).toMatchObject({ isError: false })

      const accountIds = await idsOf(world)
      await world.api('POST', '/api/accounts/pause', { accountIds })
      const paused = await say(world, chat, 'and now?')
      expect(paused).toMatchObject({ isError: true, retries: [], tried: [] })
      expect(paused.text).toStartWith('API Error: 529 No account is available (2 paused).')
      await world.api('POST', '/api/accounts/reactivate', { accountIds: accountIds.slice(1) })
      const answered = { isError: false, text: `Hello from ${SECOND.email}`, tried: [SECOND.email] }
      expect(await say(world, chat, 'and now?')).toMatchObject({ ...answered, retries: [] })
      await world.api('POST', '/api/accounts/reactivate', { accountIds: accountIds.slice(0, 1) })

      failAll(world, faults.overloaded())
      const waiting = say(world, chat, 'hello?')
      await until(() => chat.lines.some(({ subtype }) => subtype === 'api_retry'))
      failAll(world, null)
      const back = await waiting
      expect(back).toMatchObject({ isError: false, text: expect.stringMatching(/^Hello from /) })
      expect(new Set(back.retries)).toEqual(new Set([529]))
      expect(new Set(back.tried.slice(0, -1))).toEqual(new Set([FIRST.email, SECOND.email]))

      // A short wait is the client's.
      for (const account of world.upstream.accounts) account.next(faults.usageLimit({ resetsAt: Date.now() + 2000 }))
      const waited = await say(world, chat, 'hello?')
      expect(waited).toMatchObject({ isError: false, retries: [429], text: expect.stringMatching(/^Hello from /) })

      failAll(world, faults.usageLimit({ resetsAt: inAnHour() }))
      const limited = await say(world, chat, 'hello?')
      expect(limited).toMatchObject({ isError: true, retries: [] })
      expect(limited.text).toMatch(/429.*All accounts have reached their usage limit; it will reset at \d\d:\d\d/)

      const rows = await world.log(7 + back.retries.length)
      expect(
        rows.filter(({ status }) => status !== 'ok').map(({ httpStatus, errorCode }) => [httpStatus, errorCode]),
      ).toEqual([
        [529, 'no_accounts'],
        ...back.retries.map(() => [529, 'server_is_overloaded']),
        [429, 'usage_limit_reached'],
        [429, 'usage_limit_reached'],
      ])
    }))

  const story = 'Once upon a time there was a rose. '.repeat(4).trim()
  const broken: [string, Fault][] = [
    ['an error event', { errorEvent: { code: 'server_error', message: 'It failed.', afterEvents: 7 } }],
    ['a failed response', { failAfterCreated: { code: 'server_error', message: 'It failed.', afterEvents: 7 } }],
    ['a lost connection', { dropAfter: { events: 7, how: 'reset' }, dripMs: 20 }],
  ]
  test('asks again when a text breaks off, and shows it once', () =>
    withClaudeCode({}, async ({ world, claude }) => {
      await using chat = claude.chat('--include-partial-messages')
      for (const [name, fault] of broken) {
        world.upstream.script(() => answers.text(story))
        for (const account of world.upstream.accounts) account.next(fault)
        const before = textOf(chat).length
        const { isError, text, tried, retries } = await say(world, chat, name)
        expect({ name, isError, text, retries }).toEqual({ name, isError: false, text: story, retries: [] })
        expect(tried).toHaveLength(2)
        // What was cut off had been on the screen.
        expect(textOf(chat).slice(before)).toStartWith('Once upon a time')
        for (const account of world.upstream.accounts) account.clearFaults()
      }
      const texts = chat.lines.flatMap(({ type, message }) => (type === 'assistant' ? (message?.content ?? []) : []))
      expect(texts.map(({ text }) => text)).toEqual([story, story, story])
      world.upstream.script(null)
      expect(await say(world, chat, 'go on')).toMatchObject({ isError: false, text: expect.stringMatching(/^Hello/) })
      const said = getItems(world.turns().at(-1)).filter(({ role }) => role === 'assistant')
      expect(said.map(({ content }) => getText(content))).toEqual([story, story, story])
      const failures = (await world.log(7)).filter(({ status }) => status !== 'ok')
      expect(failures.map(({ httpStatus, attemptCount }) => [httpStatus, attemptCount])).toEqual(
        Array(3).fill([200, 1]),
      )
    }))

  test('goes on where an answer broke off between two parts', () =>
    withClaudeCode({}, async ({ world, claude }) => {
      await using chat = claude.chat()
      world.upstream.script(({ input }) => {
        const isResumed = getText(input.findLast(({ role }) => role === 'user')?.content).includes('cut off mid-stream')
        return answers.items((isResumed ? ['Two.'] : ['One.', 'Lost.']).map((text) => ({ kind: 'text', text })))
      })
      getAccounts(world).first.next({
        failAfterCreated: { code: 'server_error', message: 'It failed.', afterEvents: 10 },
      })
      const turn = await say(world, chat, 'Count.')
      expect(turn).toMatchObject({ isError: false, retries: [], text: 'Two.', tried: [FIRST.email, FIRST.email] })
      const said = getItems(world.turns().at(-1)).filter(({ role }) => role === 'assistant')
      expect(said.map(({ content }) => getText(content))).toEqual(['One.'])
      expect(await world.log(2)).toMatchObject([{ status: 'error', httpStatus: 200 }, { status: 'ok' }])
    }))

  test('shows that the first message is too long, without trying another account', () =>
    withClaudeCode({}, async ({ world, claude }) => {
      await using chat = claude.chat()
      failAll(world, { failAfterCreated: { code: 'context_length_exceeded', message: 'Too long.', afterEvents: 1 } })
      const first = await say(world, chat, 'hello')
      expect(first).toMatchObject({ isError: true, text: expect.stringMatching(/^Prompt is too long .*limit 272000/) })
      failAll(world, faults.contextLength())
      const second = await say(world, chat, 'hello')
      expect(second).toMatchObject({ isError: true, text: expect.stringMatching(/^Prompt is too long/) })
      expect(new Set([...first.tried, ...second.tried])).toEqual(new Set([FIRST.email]))
      failAll(world, null)
      expect(await say(world, chat, 'hello')).toMatchObject({ isError: false, text: `Hello from ${FIRST.email}` })
      const rows = await world.log(first.tried.length + second.tried.length + 1)
      expect(new Set(rows.slice(0, -1).map(({ httpStatus, errorCode }) => `${httpStatus} ${errorCode}`))).toEqual(
        new Set(['400 context_length_exceeded']),
      )
    }))

  test('shows immediately why its key or its base URL is rejected', async () => {
    await using world = await startWorld(TWO_ACCOUNTS)
    const create = async (body: NewKey) => (await world.api<{ key: string }>('POST', '/api/api-keys', body)).key
    const other = await create({ name: 'other', allowedModels: ['gpt-6-luna'] })
    const limits = [{ limitType: 'requests', limitWindow: 'daily', maxValue: 1 }]
    const limited = await create({ name: 'limited', limits })
    await callOnce(world, limited)
    const { url } = world.door
    const rejected: [key: string, baseUrl: string, words: RegExp][] = [
      ['sk-clb-wrong', url, /401 Invalid API key/],
      [other, url, /403 This API key cannot use the model 'gpt-5\.5'/],
      [limited, url, /429.*API key requests daily limit exceeded/],
      [world.key, `${url}/v1`, /405 POST \/v1\/v1\/messages does not exist\. .*Set the base URL of the client to http/],
    ]
    for (const [key, baseUrl, words] of rejected) {
      using claude = installClaudeCode({ door: world.door, key }, { env: { ANTHROPIC_BASE_URL: baseUrl } })
      await using chat = claude.chat()
      const { kinds, isError, text } = await chat.say('hello')
      expect({ isError, text }).toEqual({ isError: true, text: expect.stringMatching(words) })
      expect(kinds).not.toContain('system/api_retry')
    }
    expect(world.turns()).toHaveLength(1)
  })
})

interface NewKey {
  name: string
  allowedModels?: string[]
  limits?: { limitType: string; limitWindow: string; maxValue: number }[]
}

const idsOf = async (world: World): Promise<string[]> => {
  const { accounts } = await world.api<{ accounts: { accountId: string }[] }>('GET', '/api/accounts')
  return accounts.map(({ accountId }) => accountId)
}

const callOnce = async ({ door }: World, key: string): Promise<void> => {
  const body = JSON.stringify({ model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] })
  const response = await fetch(`${door.url}/v1/messages`, { method: 'POST', headers: { 'x-api-key': key }, body })
  expect([response.status, JSON.parse(await response.text()).type]).toEqual([200, 'message'])
}
