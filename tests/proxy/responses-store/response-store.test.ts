/** What the store keeps, for how long, and how much memory that takes, counted by the byte. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { MAX_RESPONSE_BYTES, ResponseStore } from '../../../src/proxy/responses-store/response-store.ts'
import type { Recording, RequestToStore, StoredResponse } from '../../../src/proxy/responses-store/stored-response.ts'
import { ManualClock } from '../../support/clock.ts'
import { holds } from '../../support/property.ts'

const MINUTE = 60_000
const MIB = 1024 * 1024

const aStore = (settings = { responseStoreMinutes: 60, responseStoreMiB: 64 }) => {
  const clock = new ManualClock()
  return { clock, settings, store: new ResponseStore({ clock, settings: () => settings }) }
}

const aRequest = (more: Partial<RequestToStore> = {}): RequestToStore => ({
  scope: 'key_1',
  previous: null,
  input: '[]',
  inputIds: [],
  instructions: [],
  itemIds: [],
  callIds: [],
  ...more,
})

const text = (value: string) => JSON.stringify({ role: 'user', content: value })
const list = (...values: string[]) => `[${values.map(text).join(',')}]`
const response = (id: string, output: object[] = [{ type: 'message', id: `msg_${id}`, content: id }]) => ({
  id,
  object: 'response',
  output,
})

const finish = (recording: Recording | null | undefined, answer: ReturnType<typeof response>) =>
  recording?.finish(answer, JSON.stringify(answer))

/** Answers one request. */
const put = (store: ResponseStore, id: string, more: Partial<RequestToStore> = {}): StoredResponse | null => {
  const recording = store.record(aRequest(more))
  finish(recording, response(id))
  recording?.release()
  return store.get(more.scope ?? 'key_1', id)
}

const getTexts = (last: StoredResponse | null): string[] => {
  const texts: string[] = []
  for (let one = last; one; one = one.previous) texts.unshift(...[...one.input, ...one.output].map((kept) => kept.text))
  return texts
}

describe('memory', () => {
  test('10,000 conversations stay within the limit, the newest of them stored', () => {
    const { store } = aStore()
    const bulk = 'x'.repeat(4_000)
    let most = 0
    for (let n = 0; n < 10_000; n++) {
      let previous: StoredResponse | null = null
      for (const step of ['a', 'b'])
        previous = put(store, `resp_${n}${step}`, {
          scope: `key_${n % 50}`,
          previous,
          input: list(`${n}${step}${bulk}`),
        })
      most = Math.max(most, store.bytes)
    }
    expect(most).toBeLessThanOrEqual(64 * MIB)
    expect(store.bytes).toBeGreaterThan(63 * MIB)
    expect(getTexts(store.get('key_49', 'resp_9999b'))).toHaveLength(4)
    expect(store.get('key_0', 'resp_0b')).toBeNull()
  })

  test('a chain of 500 stores each item once', () => {
    const { store } = aStore()
    const sizes: number[] = []
    let previous: StoredResponse | null = null
    for (let n = 0; n < 500; n++) {
      previous = put(store, `resp_${String(n).padStart(3, '0')}`, {
        previous,
        input: list('x'.repeat(1000) + String(n).padStart(3, '0')),
      })
      sizes.push(store.bytes)
    }
    const steps = sizes.slice(1).map((size, index) => size - sizes[index]!)
    expect(new Set(steps).size).toBe(1)
    expect(getTexts(previous)).toHaveLength(1000)
  })

  test('a history resent in full with every request stores each item once, when memory is short', () => {
    const { store, settings } = aStore()
    settings.responseStoreMiB = 3
    const input = Array.from({ length: 100 }, (_, n) => `${n}${'x'.repeat(10_000)}`)
    for (let n = 1; n <= 100; n++)
      finish(store.record(aRequest({ input: list(...input.slice(0, n)) })), response(`resp_${n}`))
    expect(store.size).toBe(100)
    for (let n = 1; n <= 100; n++) expect(store.get('key_1', `resp_${n}`)?.input).toHaveLength(n)
    expect(store.bytes).toBeLessThan(2 * 100 * 10_000)
  })

  test('a chain of 20,000 is dropped at once', () => {
    const { store, settings } = aStore()
    settings.responseStoreMiB = 1024
    let previous: StoredResponse | null = null
    for (let n = 0; n < 20_000; n++) previous = put(store, `resp_${n}`, { previous })
    expect(store.size).toBe(20_000)
    settings.responseStoreMinutes = 0
    store.sweep()
    expect([store.size, store.bytes]).toEqual([0, 0])
  })

  test('a response over 8 MiB is not stored, whether its request or its answer is large', () => {
    const { store } = aStore()
    const large = 'x'.repeat(MAX_RESPONSE_BYTES)
    expect(store.record(aRequest({ input: list(large) }))).toBeNull()
    finish(store.record(aRequest()), response('resp_1', [{ type: 'message', id: 'msg_1', content: large }]))
    expect([store.size, store.bytes]).toEqual([0, 0])
    expect(put(store, 'resp_2', { input: list(large.slice(0, 7 * MIB)) })).not.toBeNull()
  })

  test('a request that is too large to be stored displaces nothing', () => {
    const { store } = aStore()
    put(store, 'resp_1', { input: list('a') })
    for (const mib of [9, 65]) expect(store.record(aRequest({ input: list('x'.repeat(mib * MIB)) }))).toBeNull()
    expect(store.get('key_1', 'resp_1')).not.toBeNull()
  })

  test('nor does one that is larger than the limit', () => {
    const { store, settings } = aStore()
    settings.responseStoreMiB = 1
    put(store, 'resp_1', { input: list('a') })
    expect(store.record(aRequest({ input: list('x'.repeat(2 * MIB)) }))).toBeNull()
    finish(store.record(aRequest()), response('resp_2', [{ type: 'message', content: 'x'.repeat(2 * MIB) }]))
    expect(store.get('key_1', 'resp_1')).not.toBeNull()
  })

  test('memory for running requests counts, too', () => {
    const { store, settings } = aStore()
    settings.responseStoreMiB = 10
    const running = ['a', 'b'].map((name) => store.record(aRequest({ input: list(name + 'x'.repeat(6 * MIB)) })))
    expect(running.map((recording) => recording !== null)).toEqual([true, false])
    running[0]?.release()
    expect(store.bytes).toBe(0)
  })

  test('non-ASCII text counts as two bytes a character', () => {
    const [ascii, other] = ['x', 'ж'].map((letter) => {
      const { store } = aStore()
      put(store, 'resp_1', { input: list(letter.repeat(10_000)) })
      return store.bytes
    })
    expect(other! - ascii!).toBeGreaterThan(9_900)
  })
})

describe('an item shared by several responses', () => {
  const found = (store: ResponseStore) => store.item('key_1', 'msg_0')?.text

  test.each([
    ['the newest', ['resp_2', 'resp_1']],
    ['the oldest', ['resp_1', 'resp_2']],
  ])('is found until the last of them is deleted, when %s is deleted first', (_, ids) => {
    const { store } = aStore()
    for (const id of ['resp_1', 'resp_2']) finish(recorded(store), response(id))
    for (const id of ids) {
      expect(store.delete('key_1', id)).toBe(true)
      expect(found(store)).toBe(id === ids[0] ? '{"type":"message","id":"msg_0","content":"a"}' : undefined)
    }
    expect([store.size, store.bytes]).toEqual([0, 0])
  })

  test('is not found by another key', () => {
    const { store } = aStore()
    finish(recorded(store), response('resp_1'))
    expect([store.item('key_2', 'msg_0'), store.item('', 'msg_0')]).toEqual([null, null])
    expect(found(store)).toBeDefined()
  })
})

const recorded = (store: ResponseStore) =>
  store.record(aRequest({ input: '[ {"type":"message","id":"msg_0","content":"a"} ]', inputIds: ['msg_0'] }))

describe('time', () => {
  test('the oldest are deleted first, by time and by memory', async () => {
    const { store, clock, settings } = aStore()
    for (const id of ['resp_1', 'resp_2', 'resp_3']) {
      put(store, id, { input: list(id + 'x'.repeat(600 * 1024)) })
      await clock.advance(20 * MINUTE)
    }
    expect([1, 2, 3].map((n) => store.get('key_1', `resp_${n}`) !== null)).toEqual([false, true, true])
    settings.responseStoreMiB = 1
    store.sweep()
    expect([1, 2, 3].map((n) => store.get('key_1', `resp_${n}`) !== null)).toEqual([false, false, true])
  })

  test('the predecessor of a request is kept until it is answered', async () => {
    const { store, clock } = aStore()
    const previous = put(store, 'resp_1', { input: list('a') })
    const recording = store.record(aRequest({ previous, input: list('b') }))
    await clock.advance(61 * MINUTE)
    expect(store.get('key_1', 'resp_1')).toBeNull()
    finish(recording, response('resp_2'))
    expect(getTexts(store.get('key_1', 'resp_2'))).toHaveLength(4)
  })

  test('a settled request that finishes afterwards is still stored, unless its predecessor was deleted', async () => {
    const { store, clock } = aStore()
    const previous = put(store, 'resp_1', { input: list('a') })
    const [soon, late] = ['b', 'c'].map((one) => store.record(aRequest({ previous, input: list(one) })))
    for (const recording of [soon, late]) recording?.release()
    finish(soon, response('resp_2'))
    expect(getTexts(store.get('key_1', 'resp_2'))).toHaveLength(4)
    await clock.advance(61 * MINUTE)
    store.sweep()
    finish(late, response('resp_3'))
    expect([store.size, store.bytes]).toEqual([0, 0])
  })
})

type Step =
  | {
      does: 'put'
      id: number
      previous: number
      bytes: number
      scope: number
      ends: 'finish' | 'release' | 'both' | 'chat'
    }
  | { does: 'delete'; id: number; scope: number }
  | { does: 'wait'; minutes: number }

const small = fc.integer({ min: 0, max: 12 })
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      does: fc.constant('put' as const),
      id: small,
      previous: small,
      bytes: fc.integer({ min: 0, max: 300_000 }),
      scope: fc.integer({ min: 0, max: 1 }),
      ends: fc.constantFrom('finish' as const, 'release' as const, 'both' as const, 'chat' as const),
    }),
    fc.record({ does: fc.constant('delete' as const), id: small, scope: fc.integer({ min: 0, max: 1 }) }),
    fc.record({ does: fc.constant('wait' as const), minutes: fc.integer({ min: 0, max: 40 }) }),
  ),
  { maxLength: 60 },
)

test('in any order of events, memory stays within the limit, histories stay complete, and nothing is left at the end', () => {
  holds(
    fc.property(steps, (all) => {
      let now = 0
      const settings = { responseStoreMinutes: 60, responseStoreMiB: 1 }
      const store = new ResponseStore({ clock: { monotonic: () => now }, settings: () => settings })
      const histories = new Map<string, string[]>()
      for (const step of all) {
        if (step.does === 'wait') now += step.minutes * MINUTE
        else if (step.does === 'delete') store.delete(`key_${step.scope}`, `resp_${step.id}`)
        else take(store, step, histories)
        expect(store.bytes).toBeLessThanOrEqual(MIB)
        for (const [key, history] of histories) {
          const [scope = '', id = ''] = key.split(' ')
          const stored = store.get(scope, id)
          if (stored) expect(getTexts(stored)).toEqual(history)
        }
      }
      settings.responseStoreMinutes = 0
      store.sweep()
      expect([store.size, store.bytes]).toEqual([0, 0])
    }),
    100,
  )
})

const take = (store: ResponseStore, step: Extract<Step, { does: 'put' }>, histories: Map<string, string[]>): void => {
  const scope = `key_${step.scope}`
  const id = `resp_${step.id}`
  const previous = store.get(scope, `resp_${step.previous}`)
  const input = [text(`${step.bytes % 7}${'x'.repeat(step.bytes)}`)]
  const output = [
    { type: 'reasoning', id: `rs_${step.id}`, encrypted_content: 'e' },
    { type: 'function_call', id: `fc_${step.id}`, call_id: `call_${step.id}` },
  ]
  const history = [...getTexts(previous), ...input, ...output.map((one) => JSON.stringify(one))]
  const before = store.get(scope, id)
  const itemIds = [`rs_${step.previous}`]
  const recording = store.record(
    aRequest({ scope, previous, input: `[${input}]`, itemIds, callIds: [`call_${step.previous}`] }),
  )
  if (step.ends === 'chat') recording?.finishChat(response(id, output))
  else if (step.ends !== 'release') finish(recording, response(id, output))
  recording?.release()
  if (store.get(scope, id) !== before) histories.set(`${scope} ${id}`, history)
}
