/** The real Claude Code through Sluice, with only the configuration that the dashboard prints. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { answers, getText, type Turn } from '../support/upstream/script.ts'
import { type ClaudeCode, hasClaudeCode, installClaudeCode } from './support/claude-code.ts'
import { TWO_ACCOUNTS } from './support/session.ts'
import { getItems, startWorld, type World } from './support/world.ts'

setDefaultTimeout(120_000)

const canRun = hasClaudeCode()
if (!canRun) console.log('note: Claude Code is NOT TRIED: there is no build of it for this machine')

const isCalled = (turn: Turn) => turn.input.some(({ type }) => type === 'function_call_output')

describe.skipIf(!canRun && process.env.CI !== 'true')('Claude Code', () => {
  let world: World
  let claude: ClaudeCode

  beforeAll(async () => {
    world = await startWorld(TWO_ACCOUNTS)
    claude = installClaudeCode(world, { files: { 'poem.txt': 'Roses are red.\n', 'b.txt': 'Violets.\n' } })
  })

  afterAll(async () => {
    expect(claude?.sideCalls ?? []).toEqual([])
    claude?.[Symbol.dispose]()
    await world?.[Symbol.asyncDispose]()
  })

  afterEach(() => {
    const seen = [...world.upstream.oddities]
    world.upstream.reset()
    expect(seen).toEqual([])
  })

  test('answers, and continues the conversation on the same account with its thinking', async () => {
    const first = await claude.run('hello')
    expect(first).toMatchObject({ exitCode: 0, result: { is_error: false, num_turns: 1 } })
    expect(first.result.result).toStartWith('Hello from ')
    await world.restart()
    const second = await claude.run('--resume', first.result.session_id, 'and again')
    expect(second).toMatchObject({ exitCode: 0, result: { is_error: false } })
    const [one, two] = world.turns()
    const items = getItems(two)
    expect(items.map(({ type }) => type)).toContain('reasoning')
    // The prompt cache of the upstream matches on equal bytes.
    expect(JSON.stringify(items)).toStartWith(JSON.stringify(getItems(one)).slice(0, -1))
    expect(new Set(world.accountsUsed()).size).toBe(1)
  })

  test('runs tools in parallel and reads their results', async () => {
    const folder = (name: string) => JSON.stringify({ file_path: join(process.cwd(), name) })
    world.upstream.script((turn) =>
      isCalled(turn) || !Array.isArray(turn.body.tools) || turn.body.tools.length === 0
        ? null
        : answers.items([
            { kind: 'reasoning', summary: 'Three files.' },
            { kind: 'text', text: 'I read them.' },
            { kind: 'functionCall', name: 'Bash', arguments: JSON.stringify({ command: 'cat poem.txt' }) },
            { kind: 'functionCall', name: 'Bash', arguments: JSON.stringify({ command: 'cat b.txt' }) },
            { kind: 'functionCall', name: 'Read', arguments: folder('package.json') },
          ]),
    )
    const run = await claude.run('--allowedTools', 'Bash,Read', '--', 'Read the files.')
    expect(run).toMatchObject({ exitCode: 0, result: { is_error: false } })
    expect(run.result.result).toStartWith('The tool said: ')
    const items = getItems(world.turns().at(-1))
    const outputs = items.filter(({ type }) => type === 'function_call_output')
    const answer = items.slice(items.findIndex(({ type }) => type === 'reasoning'))
    expect(answer.map(({ type }) => type)).toEqual([
      'reasoning',
      'message',
      ...Array(3).fill('function_call'),
      ...Array(3).fill('function_call_output'),
    ])
    expect(answer.map(({ name }) => name).slice(2, 5)).toEqual(['Bash', 'Bash', 'Read'])
    const idsOf = (kind: string) => answer.filter(({ type }) => type === kind).map(({ call_id }) => String(call_id))
    expect(idsOf('function_call_output').toSorted()).toEqual(idsOf('function_call').toSorted())
    const texts = outputs.map(({ output }) => getText(output)).join('\n')
    expect(texts).toContain('Roses are red.')
    expect(texts).toContain('Violets.')
  })

  test('shows the model a picture', async () => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const arguments_ = JSON.stringify({ command: `echo ${png} | base64 -d > dot.png && pwd` })
    world.upstream.script((turn) => {
      const outputs = turn.input.filter(({ type }) => type === 'function_call_output')
      if (!Array.isArray(turn.body.tools) || outputs.length > 1) return answers.text('FINISHED')
      if (outputs.length === 0) return answers.toolCall({ name: 'Bash', arguments: arguments_ })
      const file_path = join(getText(outputs[0]?.output).trim(), 'dot.png')
      return answers.toolCall({ name: 'Read', arguments: JSON.stringify({ file_path }) })
    })
    const run = await claude.run('--allowedTools', 'Bash,Read', '--', 'Look at the picture.')
    expect(run).toMatchObject({ exitCode: 0, result: { is_error: false, result: 'FINISHED' } })
    expect(JSON.stringify(getItems(world.turns().at(-1)).at(-1))).toContain('data:image/png;base64,')
  })
})
