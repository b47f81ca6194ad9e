/** The real Codex CLI with Sluice's MCP server in its configuration. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { answers } from '../support/upstream/script.ts'
import { installCodex } from './support/codex.ts'
import { getItems, startWorld, type World } from './support/world.ts'

setDefaultTimeout(120_000)

let world: World

beforeAll(async () => {
  world = await startWorld({ accounts: [{}] })
})

afterAll(() => world[Symbol.asyncDispose]())

test('a tool call asks for the capacity of the key, and the model gets the answer', async () => {
  world.upstream.script(({ input }) =>
    input.some(({ type }) => type === 'function_call_output')
      ? answers.text('You can start.')
      : answers.toolCall({ name: 'capacity', namespace: 'mcp__sluice', arguments: '{"model":"gpt-5.5"}' }),
  )
  await using codex = installCodex({
    baseUrl: `${world.url}/backend-api/codex`,
    auth: { key: world.key },
    model: 'gpt-5.5',
    mcpServer: `${world.url}/mcp`,
  })
  const run = await codex.exec('can the night job start?')
  expect(run).toMatchObject({ exitCode: 0, complaints: [], text: 'You can start.' })
  const calls = run.events.flatMap(({ type, item }) =>
    type === 'item.completed' && item?.type === 'mcp_tool_call' ? item : [],
  )
  expect(calls).toMatchObject([{ server: 'sluice', tool: 'capacity', status: 'completed', error: null }])
  const output = getItems(world.turns().at(-1)).find(({ type }) => type === 'function_call_output')
  expect(JSON.stringify(output)).toContain('can_start')
  expect(world.upstream.oddities).toEqual([])
})
