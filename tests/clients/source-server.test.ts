/** Model sources against a third-party OpenAI-compatible server: discovery and a test of each API. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { LLMock } from '@copilotkit/aimock'
import { systemClock } from '../../src/lib/clock.ts'
import { systemRandom } from '../../src/lib/random.ts'
import type { Source } from '../../src/model/sources/sources.ts'
import { createDial } from '../../src/upstream/dial.ts'
import { createLookup, GuardedFetch } from '../../src/upstream/guarded-fetch.ts'
import { SourceFetch } from '../../src/upstream/source-fetch.ts'
import { readModels } from '../../src/upstream/source-models.ts'
import { testSource } from '../../src/upstream/source-test.ts'

const mock = new LLMock({ port: 0 })
const deps = {
  clock: systemClock,
  sourceFetch: new SourceFetch(
    new GuardedFetch({
      dial: createDial({}, fetch, { trustsSocketEnvironment: true, random: systemRandom }),
      lookup: createLookup(),
      own: () => ({ port: 1, publicUrl: undefined }),
    }),
  ),
}

beforeAll(async () => {
  mock.onMessage('Reply with OK.', { content: 'OK' })
  mock.onEmbedding('OK', { embedding: [0.1, 0.2] })
  await mock.start()
})
afterAll(() => mock.stop())

const source = (): Source => ({
  id: 'src_mock',
  name: 'aimock',
  baseUrl: `${mock.url}/v1`,
  supports: { chat: true, responses: true, audio: false, embeddings: true },
  health: 'unknown',
  timeoutMs: 10_000,
  maxConcurrency: 0,
  models: new Map(),
  key: () => 'sk-mock',
})

test('its models are discovered, by host name as well as by address', async () => {
  const models = await readModels(deps, source())
  expect(models.length).toBeGreaterThan(0)
  const byName = { ...source(), baseUrl: source().baseUrl.replace('127.0.0.1', 'localhost') }
  expect(await readModels(deps, byName)).toEqual(models)
})

test('chat, Responses and embeddings pass the test', async () => {
  const { ok, models, calls } = await testSource(deps, source())
  expect(calls.map(({ capability, error }) => [capability, error])).toEqual([
    ['chat', null],
    ['responses', null],
    ['embeddings', null],
  ])
  expect([ok, models.error]).toEqual([true, null])
})
