/** SDKs with server-side conversations, with their defaults: several steps with tools over a pool of accounts. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createOpenAI as aiProvider5 } from '@ai-sdk/openai-2'
import { createOpenAI as aiProvider6 } from '@ai-sdk/openai-3'
import { createOpenAI as aiProvider7 } from '@ai-sdk/openai-4'
import { Agent as MastraAgent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { Agent, tool as agentTool, OpenAIProvider, Runner } from '@openai/agents'
import { generateText as generateText5, stepCountIs as steps5, streamText as streamText5, tool as tool5 } from 'ai-5'
import { generateText as generateText6, stepCountIs as steps6, streamText as streamText6, tool as tool6 } from 'ai-6'
import { generateText as generateText7, stepCountIs as steps7, streamText as streamText7, tool as tool7 } from 'ai-7'
import OpenAI, { BadRequestError, NotFoundError } from 'openai'
import { z } from 'zod'
import { liveService } from '../support/live.ts'
import { faults } from '../support/upstream/faults.ts'
import { type AnswerItem, answers, type Json, type Turn } from '../support/upstream/script.ts'
import { getItems, startWorld, type World } from './support/world.ts'

const MODEL = 'gpt-5.5'
const CITIES = ['Ghent', 'Bruges', 'Ypres']

setDefaultTimeout(120_000)

let world: World
let client: OpenAI

beforeAll(async () => {
  world = await startWorld({ accounts: [{}, {}] })
  client = new OpenAI({ apiKey: world.key, baseURL: `${world.url}/v1`, maxRetries: 0 })
})

afterAll(() => world[Symbol.asyncDispose]())

afterEach(() => {
  const seen = [...world.upstream.oddities]
  world.upstream.reset()
  expect(seen).toEqual([])
})

/** Reasons, looks up one city after the other, then reports the results. */
const looksAround = (upstream = world.upstream) =>
  upstream.script(({ input }: Turn) => {
    const seen = input.filter(({ type }) => type === 'function_call_output')
    const thought: AnswerItem = { kind: 'reasoning', summary: 'Hm.' }
    const city = CITIES[seen.length]
    return city === undefined
      ? answers.items([thought, { kind: 'text', text: `Saw ${seen.map(({ output }) => output).join(', ')}.` }])
      : answers.items([thought, { kind: 'functionCall', name: 'look', arguments: JSON.stringify({ city }) }])
  })

const SAID = 'Saw mild in Ghent, mild in Bruges, mild in Ypres.'
const look = ({ city }: { city: string }) => `mild in ${city}`
const parameters = z.object({ city: z.string() })

/** The upstream requests: without references, complete, each beginning with the previous one. */
const expectWhole = (requests: number): void => {
  const inputs = world.turns().map(getItems)
  expect(inputs).toHaveLength(requests)
  for (const [index, input] of inputs.entries()) {
    expect(input.filter(({ type }) => type === 'item_reference')).toEqual([])
    const before = JSON.stringify(inputs[index - 1] ?? []).slice(0, -1)
    expect(JSON.stringify(input).startsWith(before)).toBe(true)
  }
  const thoughts = inputs.at(-1)?.filter(({ type }) => type === 'reasoning') ?? []
  expect(thoughts).toHaveLength(requests - 1)
  for (const { encrypted_content } of thoughts) expect(encrypted_content).toBeString()
}

describe.each([
  ['AI SDK 5', aiProvider5, generateText5, streamText5, tool5, steps5],
  ['AI SDK 6', aiProvider6, generateText6, streamText6, tool6, steps6],
  ['AI SDK 7', aiProvider7, generateText7, streamText7, tool7, steps7],
] as const)('%s', (_name, createOpenAI, generateText, streamText, tool, stepCountIs) => {
  // as: the part used here is the same in all
  const request = ({ url, key }: Pick<World, 'url' | 'key'> = world) => ({
    model: (createOpenAI as typeof aiProvider7)({ apiKey: key, baseURL: `${url}/v1` })(MODEL),
    tools: { look: (tool as typeof tool7)({ inputSchema: parameters, execute: async (input) => look(input) }) },
    stopWhen: (stepCountIs as typeof steps7)(8),
    maxRetries: 0,
  })
  const messages = [{ role: 'user' as const, content: 'Look around.' }]

  test('several steps and a second question, store unset', async () => {
    looksAround()
    const first = await (generateText as typeof generateText7)({ ...request(), messages })
    expect(first.text).toBe(SAID)
    expectWhole(4)
    const history = [
      ...messages,
      ...(first.responseMessages ?? first.response.messages),
      { role: 'user' as const, content: 'Again?' },
    ]
    const second = await (generateText as typeof generateText7)({ ...request(), messages: history })
    expect(second.text).toBe(SAID)
    expectWhole(5)
  })

  test('streamed', async () => {
    looksAround()
    const result = (streamText as typeof streamText7)({ ...request(), messages })
    expect(await result.text).toBe(SAID)
    expectWhole(4)
  })

  test('through an account change between two steps', async () => {
    await using stack = new AsyncDisposableStack()
    const service = stack.adopt(await liveService({ accounts: 2 }), (one) => one.stop())
    looksAround(service.upstream)
    const used = () => service.upstream.requests.filter(({ status }) => status === 200).map(({ account }) => account)
    const result = await (generateText as typeof generateText7)({
      ...request({ url: service.url, key: (await service.key()).key }),
      messages,
      onStepFinish: () => {
        const owner = service.members.find(({ sim }) => sim.chatgptAccountId === used().at(-1))
        if (used().length === 2) owner?.sim.next(faults.usageLimit())
      },
    })
    expect(result.text).toBe(SAID)
    const [first, second, third, fourth] = used()
    expect([first === second, second === third, third === fourth]).toEqual([true, false, true])
    const sent = service.upstream.requests.map(({ bodyText }) => JSON.parse(bodyText).input as Json[])
    expect(sent.at(-1)?.filter(({ type }) => type === 'reasoning')).toHaveLength(1)
  })
})

describe('openai', () => {
  test('a chain of previous_response_id with a tool', async () => {
    looksAround()
    const tools = [{ type: 'function' as const, name: 'look', parameters: {}, strict: false }]
    let response = await client.responses.create({ model: MODEL, input: 'Look around.', tools })
    for (let step = 0; step < 3; step++) {
      const call = response.output.find(({ type }) => type === 'function_call') as {
        call_id: string
        arguments: string
      } // as: the script creates one
      const output = look(JSON.parse(call.arguments))
      const input = [{ type: 'function_call_output' as const, call_id: call.call_id, output }]
      response = await client.responses.create({ model: MODEL, previous_response_id: response.id, input, tools })
    }
    expect(response.output_text).toBe(SAID)
    expectWhole(4)
  })

  test('a streamed response is retrieved, continued and deleted', async () => {
    const stream = client.responses.stream({ model: MODEL, input: 'hello' })
    const first = await stream.finalResponse()
    const { output_text: _, ...stored } = await client.responses.retrieve(first.id)
    expect(first).toMatchObject({ ...stored, store: true })
    const second = await client.responses.create({ model: MODEL, input: 'again', previous_response_id: first.id })
    expect(second.previous_response_id).toBe(first.id)
    await client.responses.delete(first.id)
    expect(await client.responses.retrieve(first.id).catch((err: unknown) => err)).toBeInstanceOf(NotFoundError)
    const late = await client.responses
      .create({ model: MODEL, input: 'late', previous_response_id: first.id })
      .catch((err: unknown) => err)
    expect(late).toBeInstanceOf(BadRequestError)
    expect(late).toMatchObject({ code: 'previous_response_not_found', param: 'previous_response_id' })
    expect((await client.responses.retrieve(second.id)).output_text).toBe(second.output_text)
  })

  test('input items come in pages', async () => {
    const input = Array.from({ length: 5 }, (_, n) => ({ role: 'user' as const, content: `hello ${n}` }))
    const { id } = await client.responses.create({ model: MODEL, input })
    const texts: unknown[] = []
    for await (const item of client.responses.inputItems.list(id, { limit: 2, order: 'asc' }))
      texts.push((item as unknown as { content: Json[] }).content[0]?.text) // as: these are messages
    expect(texts).toEqual(input.map(({ content }) => content))
  })
})

test('OpenAI Agents SDK: tools, and a second run that continues the first by its response id', async () => {
  looksAround()
  const agent = new Agent({
    name: 'Guide',
    instructions: 'Look around.',
    model: MODEL,
    tools: [agentTool({ name: 'look', description: 'Looks.', parameters, execute: async (input) => look(input) })],
  })
  const runner = new Runner({
    modelProvider: new OpenAIProvider({ openAIClient: client as never, useResponses: true }), // as: it brings a copy of the SDK
    tracingDisabled: true,
  })
  const first = await runner.run(agent, 'Go.')
  expect(first.finalOutput).toBe(SAID)
  expectWhole(4)
  const second = await runner.run(agent, 'Again?', { previousResponseId: first.lastResponseId! })
  expect(second.finalOutput).toBe(SAID)
  expectWhole(5)
})

test('Mastra: an agent with a tool', async () => {
  looksAround()
  const agent = new MastraAgent({
    id: 'guide',
    name: 'Guide',
    instructions: 'Look around.',
    model: aiProvider6({ apiKey: world.key, baseURL: `${world.url}/v1` })(MODEL),
    tools: {
      look: createTool({
        id: 'look',
        description: 'Looks.',
        inputSchema: parameters,
        execute: async (input) => look(input as { city: string }),
      }),
    },
  })
  const result = await agent.generate('Go.', { maxSteps: 8 })
  expect(result.text).toBe(SAID)
  expectWhole(4)
})
