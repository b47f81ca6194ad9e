/** An interrupted `/v1/responses` stream in popular SDKs: none of them may take it for a finished response. */
import { describe, expect, test } from 'bun:test'
import { createOpenAI as aiProvider5 } from '@ai-sdk/openai-2'
import { createOpenAI as aiProvider6 } from '@ai-sdk/openai-3'
import { createOpenAI as aiProvider7 } from '@ai-sdk/openai-4'
import { ChatOpenAI } from '@langchain/openai'
import { streamText as streamText5 } from 'ai-5'
import { streamText as streamText6 } from 'ai-6'
import { streamText as streamText7 } from 'ai-7'
import OpenAI7 from 'openai'
import OpenAI4 from 'openai-4'
import OpenAI5 from 'openai-5'
import OpenAI6 from 'openai-6'
import { liveService } from '../support/live.ts'
import type { Fault } from '../support/upstream/faults.ts'
import { answers } from '../support/upstream/script.ts'

const MODEL = 'gpt-5.5'
const TEXT = 'Good morning to you.'
const BROKEN = { code: 'server_error', message: 'It broke.', afterEvents: 6 }
/** What breaks the stream, and words of it that the SDK must pass on. */
const FAULTS: [string, Fault, string][] = [
  ['a cut connection', { dropAfter: { events: 6, how: 'fin' } }, 'ended before the response was complete'],
  ['response.failed of the upstream', { failAfterCreated: BROKEN }, BROKEN.message],
  ['an error event of the upstream', { errorEvent: BROKEN }, BROKEN.message],
]

/** The text of a response, read to its end; throws if the SDK reports a failure. */
type Read = (options: { baseURL: string; apiKey: string }) => Promise<string>

const request = { model: MODEL, input: 'hello' }

const READERS: Record<string, Read> = {}
for (const [name, Client] of Object.entries({
  'openai 4': OpenAI4,
  'openai 5': OpenAI5,
  'openai 6': OpenAI6,
  'openai 7': OpenAI7,
})) {
  READERS[name] = async (options) => {
    const client = new (Client as typeof OpenAI7)({ ...options, maxRetries: 0 }) // as: the part used here is the same in all
    let text = ''
    for await (const event of await client.responses.create({ ...request, stream: true }))
      if (event.type === 'response.output_text.delta') text += event.delta
    return text
  }
  READERS[`${name}, stream helper`] = async (options) => {
    const client = new (Client as typeof OpenAI7)({ ...options, maxRetries: 0 }) // as above
    const { output } = await client.responses.stream(request).finalResponse()
    const parts = output.flatMap((item) => (item.type === 'message' ? item.content : []))
    return parts.map((part) => (part.type === 'output_text' ? part.text : '')).join('')
  }
}
for (const [name, createOpenAI, streamText] of [
  ['AI SDK 5', aiProvider5, streamText5],
  ['AI SDK 6', aiProvider6, streamText6],
  ['AI SDK 7', aiProvider7, streamText7],
] as const)
  READERS[name] = async (options) => {
    // as: the part used here is the same in all
    const model = (createOpenAI as typeof aiProvider7)(options).responses(MODEL)
    const result = (streamText as typeof streamText7)({ model, prompt: 'hello', maxRetries: 0, onError: () => {} })
    let text = ''
    for await (const part of result.fullStream) {
      if (part.type === 'error') throw part.error
      if (part.type === 'text-delta') text += part.text
    }
    return text
  }
READERS.LangChain = async ({ baseURL, apiKey }) => {
  const model = new ChatOpenAI({
    model: MODEL,
    apiKey,
    configuration: { baseURL },
    useResponsesApi: true,
    maxRetries: 0,
  })
  let text = ''
  for await (const chunk of await model.stream('hello')) text += chunk.text
  return text
}

/** A separate server, because a broken stream puts its account into cooldown. */
const answer = async (read: Read, fault?: Fault): Promise<string> => {
  await using stack = new AsyncDisposableStack()
  const service = stack.adopt(await liveService(), (one) => one.stop())
  service.upstream.script(() => answers.text(TEXT, { deltaChars: 4 }))
  if (fault) service.members[0]!.sim.always(fault)
  return await read({ baseURL: `${service.url}/v1`, apiKey: (await service.key()).key })
}

describe.each(Object.entries(READERS))('%s', (_name, read) => {
  test('reads a response to its end', async () => {
    expect(await answer(read)).toBe(TEXT)
  })

  test.each(FAULTS)('%s raises', async (_what, fault, words) => {
    const outcome = await answer(read, fault).then(
      (text) => `no error, but "${text}"`,
      (error: unknown) => Bun.inspect(error),
    )
    expect(outcome).toContain(words)
  })
})
