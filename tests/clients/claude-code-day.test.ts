/** A working day with the real Claude Code: long conversations, subagents, MCP, and the requests it sends on its own. */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { until } from '../support/until.ts'
import { faults } from '../support/upstream/faults.ts'
import type { ReceivedRequest } from '../support/upstream/ledger.ts'
import { type AnswerItem, answers, getText, isJson, type Json } from '../support/upstream/script.ts'
import type { ClaudeLine } from './support/claude-chat.ts'
import { hasClaudeCode, installClaudeCode, withClaudeCode } from './support/claude-code.ts'
import { FIRST, getAccounts, SECOND, TWO_ACCOUNTS } from './support/session.ts'
import { getItems, startWorld } from './support/world.ts'

setDefaultTimeout(120_000)

const IN_AN_HOUR_MS = Date.now() + 3_600_000
const canRun = hasClaudeCode()

const fieldOf = ({ body }: ReceivedRequest, name: string): unknown => (isJson(body) ? body[name] : undefined)

/** Names of the tools, or their types. */
const toolsOf = (tools: unknown): string[] =>
  (Array.isArray(tools) ? tools : []).map(({ name, type }) => String(name ?? type))

const outputsOf = (items: readonly Json[]): string[] =>
  items.filter(({ type }) => type === 'function_call_output').map(({ output }) => getText(output))

const lastUserText = (items: readonly Json[]): string => getText(items.findLast(({ role }) => role === 'user')?.content)

/** The prompt cache of the upstream matches on equal bytes from the beginning. */
const expectSamePrefix = (before: ReceivedRequest, after: ReceivedRequest): void => {
  const rest = ({ body }: ReceivedRequest) => JSON.stringify({ ...(body as Json), input: null }) // as: the stand-in checked it
  expect(rest(after)).toBe(rest(before))
  expect(getItems(before).length).toBeGreaterThan(0)
  expect(JSON.stringify(getItems(after))).toStartWith(JSON.stringify(getItems(before)).slice(0, -1))
}

/** The reasoning items from which the client's thinking blocks were made, oldest first. */
const reasoningShown = (lines: readonly ClaudeLine[]): Json[] =>
  lines
    .flatMap(({ message }) => message?.content ?? [])
    .flatMap(({ type, thinking, signature = '' }) => {
      if (type !== 'thinking') return []
      const [, id, encrypted] = /^sluice1\.([^.]+)\.(.+)$/.exec(signature) ?? []
      const summary = [{ type: 'summary_text', text: thinking }]
      return [{ type: 'reasoning', summary, id, encrypted_content: encrypted }]
    })

const reasoningOf = (turn: ReceivedRequest | undefined): Json[] =>
  getItems(turn).filter(({ type }) => type === 'reasoning')

describe.skipIf(!canRun && process.env.CI !== 'true')('Claude Code', () => {
  test('compacts by hand, near the end of its window, and when the model rejects the length', () =>
    withClaudeCode(
      { env: { CLAUDE_CODE_MAX_CONTEXT_TOKENS: '100000', CLAUDE_CODE_AUTO_COMPACT_WINDOW: '100000' } },
      async ({ world, claude }) => {
        let tokens = 1000
        world.upstream.script(({ input }) =>
          lastUserText(input).includes('<summary>')
            ? answers.text('<analysis>It was short.</analysis>\n<summary>THE SUMMARY</summary>')
            : answers.items(
                [
                  { kind: 'reasoning', summary: 'Hm.' },
                  { kind: 'text', text: 'Done.' },
                ],
                {
                  usage: { inputTokens: tokens - 10, cachedTokens: tokens - 500, outputTokens: 10 },
                },
              ),
        )
        await using chat = claude.chat()
        const say = async (prompt: string) => {
          const first = world.turns().length
          const { isError, text, kinds, lines } = await chat.say(prompt)
          const compactions = lines.flatMap(({ compact_metadata }) => compact_metadata?.trigger ?? [])
          const sent = world.turns().slice(first)
          return { outcome: { isError, text, kinds, compactions }, sent }
        }
        /** The summary replaced `forgotten`, and the key of the prompt cache is the same. */
        const expectCompacted = (request: ReceivedRequest | undefined, forgotten: string) => {
          const text = JSON.stringify(getItems(request))
          expect(text).toContain('THE SUMMARY')
          expect(text).not.toContain(forgotten)
        }
        expect((await say('ROSES')).outcome).toMatchObject({ isError: false, text: 'Done.', compactions: [] })
        const before = await say('VIOLETS')

        const manual = await say('/compact keep the poem')
        expect(manual.outcome).toMatchObject({ isError: false, compactions: ['manual'] })
        expect(manual.sent).toHaveLength(1)
        expectSamePrefix(before.sent[0]!, manual.sent[0]!)
        expect(lastUserText(getItems(manual.sent[0]))).toContain('keep the poem')

        // Claude Code compacts 33,000 tokens before the end of the window, cached tokens included.
        tokens = 66_900
        const below = await say('TULIPS')
        expect(below.outcome).toMatchObject({ isError: false, text: 'Done.', compactions: [] })
        expectCompacted(below.sent[0], 'ROSES')
        tokens = 67_000
        expect((await say('LILIES')).outcome).toMatchObject({ isError: false, text: 'Done.', compactions: [] })
        tokens = 1000
        const auto = await say('DAISIES')
        expect(auto.outcome).toMatchObject({ isError: false, text: 'Done.', compactions: ['auto'] })
        expect(auto.sent).toHaveLength(2)
        expectSamePrefix(below.sent[0]!, auto.sent[0]!)
        expectCompacted(auto.sent[1], 'TULIPS')

        getAccounts(world).first.next({
          failAfterCreated: { code: 'context_length_exceeded', message: 'Too long.', afterEvents: 1 },
        })
        const rejected = await say('ASTERS')
        expect(rejected.outcome).toMatchObject({ isError: false, text: 'Done.', compactions: ['auto'] })
        expect(rejected.outcome.kinds).not.toContain('system/api_retry')
        expectCompacted(rejected.sent.at(-1), 'LILIES')
        expect(JSON.stringify(getItems(rejected.sent.at(-1)))).toContain('ASTERS')

        expect(new Set(world.accountsUsed())).toEqual(new Set([FIRST.email]))
        expect(new Set(world.turns().map((turn) => fieldOf(turn, 'prompt_cache_key'))).size).toBe(1)
        const rows = (await world.log(world.turns().length)).filter(({ status }) => status !== 'ok')
        expect(rows).toMatchObject([{ httpStatus: 400, errorCode: 'context_length_exceeded', attemptCount: 1 }])
      },
    ))

  test('keeps its thinking over ten turns, a restart and a change of account, and drops what it cannot read', () =>
    withClaudeCode({}, async ({ world, claude }) => {
      const { first } = getAccounts(world)
      let sessionId = ''
      let shown: Json[]
      {
        await using chat = claude.chat()
        for (let n = 1; n <= 10; n++) {
          if (n === 4) await world.restart()
          if (n === 7) first.always(faults.usageLimit({ resetsAt: IN_AN_HOUR_MS }))
          const turn = await chat.say(`message ${n}`)
          expect(turn).toMatchObject({ isError: false, text: `Hello from ${n < 7 ? FIRST.email : SECOND.email}` })
          expect(turn.kinds).not.toContain('system/api_retry')
          ;({ sessionId } = turn)
        }
        shown = reasoningShown(chat.lines)
      }
      expect(shown.map(({ encrypted_content }) => String(encrypted_content).split('.')[1])).toEqual([
        ...Array(6).fill(first.chatgptAccountId),
        ...Array(4).fill(getAccounts(world).second.chatgptAccountId),
      ])
      const [limited, ...others] = world.turns().filter(({ status }) => status !== 200)
      expect([limited?.status, others]).toEqual([429, []])
      const served = world.turns().filter(({ status }) => status === 200)
      // Each account got everything that it thought itself, in order, and nothing of the other one.
      expect(served.map(reasoningOf)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => shown.slice(n < 6 ? 0 : 6, n)))
      const spoken = ['reasoning', 'message assistant', 'message user']
      expect(getItems(served[5]).map(({ type, role }) => (role === undefined ? type : `${type} ${role}`))).toEqual([
        'message developer',
        'message user',
        'message developer',
        ...Array(5).fill(spoken).flat(),
      ])
      for (const [index, turn] of served.entries())
        if (index !== 0 && index !== 6) expectSamePrefix(served[index - 1]!, turn)
      expect(fieldOf(served[9]!, 'prompt_cache_key')).toBe(fieldOf(served[0]!, 'prompt_cache_key'))
      expect(fieldOf(served[0]!, 'prompt_cache_key')).toBeString()

      const path = claude.transcript(sessionId)
      const kept = readFileSync(path, 'utf8')
      const strange = kept.replaceAll(
        `sluice1.${shown[8]?.id}.${shown[8]?.encrypted_content}`,
        'EuYBCkYICRgCKkBstrange',
      )
      expect(strange).not.toBe(kept)
      writeFileSync(path, strange)
      const resumed = await claude.run('--resume', sessionId, 'and now?')
      expect(resumed).toMatchObject({ exitCode: 0, result: { is_error: false, result: `Hello from ${SECOND.email}` } })
      const [last, ...more] = world.turns().slice(11)
      expect(more).toEqual([])
      expect(reasoningOf(last)).toEqual([shown[6]!, shown[7]!, shown[9]!])
      expect(last?.bodyText).not.toContain('strange')
    }))

  test('runs two subagents at once, one of them on a small model', () =>
    withClaudeCode({ files: { 'poem.txt': 'Roses are red.\n' } }, async ({ world, claude }) => {
      const delegate = (prompt: string, model?: string): AnswerItem => ({
        kind: 'functionCall',
        name: 'Agent',
        arguments: JSON.stringify({
          ...(model !== undefined && { model }),
          description: 'Read it',
          prompt,
          subagent_type: 'general-purpose',
          run_in_background: false,
        }),
      })
      const byHelper = (a: string, b: string) => a.indexOf('HELPER TWO') - b.indexOf('HELPER TWO')
      world.upstream.script((turn) => {
        const outputs = outputsOf(turn.input)
        const prompt = lastUserText(turn.input)
        if (!prompt.includes('HELPER'))
          return outputs.length > 0
            ? answers.text('Both are back.')
            : answers.items([delegate('HELPER ONE'), delegate('HELPER TWO', 'haiku')])
        if (outputs.length === 0) return answers.toolCall({ name: 'Bash', arguments: '{"command":"cat poem.txt"}' })
        return answers.text(`${prompt.slice(-10)} read: ${outputs[0]}`)
      })
      await using chat = claude.chat('--allowedTools', 'Bash,Agent')
      expect(await chat.say('Ask them.')).toMatchObject({ isError: false, text: 'Both are back.' })
      const turns = world.turns()
      const [main, ...others] = turns
      expect(others).toHaveLength(5)
      // In the order in which they finished.
      expect(outputsOf(getItems(turns.at(-1))).toSorted(byHelper)).toEqual([
        expect.stringContaining('HELPER ONE read: Roses are red.'),
        expect.stringContaining('HELPER TWO read: Roses are red.'),
      ])
      expectSamePrefix(main!, turns.at(-1)!)
      const modelsFor = (prompt: string) => [
        ...new Set(
          turns.filter((turn) => lastUserText(getItems(turn)).endsWith(prompt)).map((turn) => fieldOf(turn, 'model')),
        ),
      ]
      expect(modelsFor('HELPER ONE')).toEqual(['gpt-5.5'])
      expect(modelsFor('HELPER TWO')).toEqual([expect.stringMatching(/^gpt-6/)])
      expect(new Set(world.accountsUsed()).size).toBe(1)
      expect(new Set(turns.map((turn) => fieldOf(turn, 'prompt_cache_key'))).size).toBe(1)
    }))

  test('finds a tool of an MCP server and uses it, without changing the tools before it', () =>
    withClaudeCode({}, async ({ world, claude }) => {
      const capacity = 'mcp__sluice__capacity'
      world.upstream.script(({ input, body }) => {
        const outputs = outputsOf(input)
        if (!toolsOf(body.tools).includes(capacity))
          return answers.toolCall({ name: 'ToolSearch', arguments: JSON.stringify({ query: `select:${capacity}` }) })
        if (outputs.length < 2) return answers.toolCall({ name: capacity, arguments: '{"model":"gpt-5.5"}' })
        return answers.text('You can start.')
      })
      const server = { type: 'http', url: `${world.door.url}/mcp`, headers: { authorization: `Bearer ${world.key}` } }
      await using chat = claude.chat(
        '--mcp-config',
        JSON.stringify({ mcpServers: { sluice: server } }),
        '--allowedTools',
        'mcp__sluice',
      )
      expect(await chat.say('Can the night job start?')).toMatchObject({ isError: false, text: 'You can start.' })
      const turns = world.turns()
      expect(turns).toHaveLength(3)
      const [before, ...after] = turns.map(({ body }) => toolsOf(isJson(body) ? body.tools : null))
      expect(before).toContain('Bash')
      expect(after).toEqual([
        [...before!, capacity],
        [...before!, capacity],
      ])
      const outputs = outputsOf(getItems(turns.at(-1)))
      expect(outputs[0]).toContain(`The tool ${capacity} can be used now.`)
      expect(JSON.parse(outputs[1] ?? '')).toMatchObject({ can_start: true })
    }))

  test('sends requests of its own, and goes on as before', () =>
    withClaudeCode({}, async ({ world, claude }) => {
      world.upstream.script(({ input, body }) => {
        const tools = toolsOf(body.tools)
        const outputs = outputsOf(input)
        if (tools.includes('web_search')) return answers.text('They are red: https://example.com/roses')
        if (isJson(body.text)) return answers.text('{"name":"red-roses"}')
        if (!lastUserText(input).includes('What colour')) return null
        if (!tools.includes('WebSearch'))
          return answers.toolCall({ name: 'ToolSearch', arguments: '{"query":"select:WebSearch"}' })
        if (outputs.length < 2) return answers.toolCall({ name: 'WebSearch', arguments: '{"query":"rose colour"}' })
        return answers.text('Red.')
      })
      await using chat = claude.chat('--allowedTools', 'WebSearch')
      const say = async (prompt: string) => {
        const first = world.turns().length
        const { isError, text } = await chat.say(prompt)
        return { isError, text, sent: world.turns().slice(first) }
      }
      const counted = () => world.door.visits.filter(({ request }) => request === 'POST /v1/messages/count_tokens')

      const search = await say('What colour are roses?')
      expect(search).toMatchObject({ isError: false, text: 'Red.' })
      expect(search.sent.map(({ body }) => toolsOf(isJson(body) ? body.tools : null).at(-1))).toEqual([
        'Write',
        'WebSearch',
        'web_search',
        'WebSearch',
      ])
      expect(outputsOf(getItems(search.sent[3])).at(-1)).toContain('They are red: https://example.com/roses')

      expect(fieldOf(search.sent[2]!, 'reasoning')).toEqual({ effort: 'low' })

      const rename = await say('/rename')
      expect(rename).toMatchObject({ isError: false, text: 'Session renamed to: red-roses' })
      expect(rename.sent.map((turn) => fieldOf(turn, 'reasoning'))).toEqual([{ effort: 'low' }])

      const before = counted().length
      const context = await say('/context')
      expect(context).toMatchObject({ isError: false, sent: [] })
      expect(context.text).toMatch(/System tools \| \d/)
      const counts = counted().slice(before)
      expect(counts.length).toBeGreaterThan(1)
      expect(new Set(counts.map(({ status }) => status))).toEqual(new Set([200]))

      const check = await say('/model claude-gpt-6-luna')
      expect(check).toMatchObject({ isError: false, text: expect.stringContaining('GPT-6-Luna') })
      expect(check.sent.map((turn) => fieldOf(turn, 'model'))).toEqual(['gpt-6-luna'])
      const { text, sent } = await say('And who are you?')
      expect([text, sent.map((turn) => fieldOf(turn, 'model'))]).toEqual([`Hello from ${FIRST.email}`, ['gpt-6-luna']])
      const { sent: again } = await say('Are you sure?')
      expectSamePrefix(sent[0]!, again[0]!)

      const rows = await world.log(world.turns().length)
      expect(new Set(rows.map(({ status }) => status))).toEqual(new Set(['ok']))
      expect(new Set(world.turns().map((turn) => fieldOf(turn, 'prompt_cache_key'))).size).toBe(1)
    }))

  test('names an interactive session with a request of its own, and stops on Esc', async () => {
    await using world = await startWorld(TWO_ACCOUNTS)
    // It asks for titles only if it may also contact other servers.
    const env = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '', DISABLE_TELEMETRY: '1', DISABLE_AUTOUPDATER: '1' }
    using claude = installClaudeCode(world, { env })
    world.upstream.script(({ body }) =>
      isJson(body.text) ? answers.text('{"title":"Red roses"}') : answers.bulk(10_000, 10, { dripMs: 5 }),
    )
    await using terminal = claude.open('What colour are roses?')
    await until(() => terminal.output().includes('Red roses') && terminal.output().includes('xxxx'), terminal.output)
    expect(world.upstream.openStreams).toBe(1)
    terminal.press('\x1b')
    await until(() => world.upstream.openStreams === 0)
    const turns = world.turns()
    expect(turns.map((turn) => fieldOf(turn, 'reasoning'))).toEqual(
      expect.arrayContaining([{ effort: 'low' }, { effort: 'high', summary: 'auto' }]),
    )
    expect(turns).toHaveLength(2)
    expect(new Set(turns.map((turn) => fieldOf(turn, 'prompt_cache_key'))).size).toBe(1)
    expect((await world.log(2)).map(({ status }) => status).toSorted()).toEqual(['cancelled', 'ok'])
    expect(world.upstream.oddities).toEqual([])
  })
})
