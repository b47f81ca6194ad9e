/** What the store keeps, for how long, and how much memory that takes, counted by the byte. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  MAX_RESPONSE_BYTES,
  type RequestToStore,
  ResponseStore,
  type StoredResponse,
} from '../../../src/proxy/responses-store/response-store.ts'
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
  input: [],
  instructions: [],
  itemIds: [],
  callIds: [],
  ...more,
})

const text = (value: string) => JSON.stringify({ role: 'user', content: value })
const item = (value: string) => ({ text: text(value), id: null })
const response = (id: string, output: object[] = [{ type: 'message', id: `msg_${id}`, content: id }]) => ({
  id,
  object: 'response',
  output,
})

/** Answers one request. */
const put = (store: ResponseStore, id: string, more: Partial<RequestToStore> = {}): StoredResponse | null => {
  const recording = store.record(aRequest(more))
  recording?.finish(response(id))
  recording?.release()
  return store.get(more.scope ?? 'key_1', id)
}

const textsOf = (last: StoredResponse | null): string[] => {
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
          input: [item(`${n}${step}${bulk}`)],
        })
      most = Math.max(most, store.bytes)
    }
    expect(most).toBeLessThanOrEqual(64 * MIB)
    expect(store.bytes).toBeGreaterThan(63 * MIB)
    expect(textsOf(store.get('key_49', 'resp_9999b'))).toHaveLength(4)
    expect(store.get('key_0', 'resp_0b')).toBeNull()
  })

  test('a chain of 500 costs each item once', () => {
    const { store } = aStore()
    const sizes: number[] = []
    let previous: StoredResponse | null = null
    for (let n = 0; n < 500; n++) {
      previous = put(store, `resp_${String(n).padStart(3, '0')}`, {
        previous,
        input: [item('x'.repeat(1000) + String(n).padStart(3, '0'))],
      })
      sizes.push(store.bytes)
    }
    const steps = sizes.slice(1).map((size, index) => size - sizes[index]!)
    expect(new Set(steps).size).toBe(1)
    expect(textsOf(previous)).toHaveLength(1000)
  })

  test('a history that is sent again in full with every request costs each item once', () => {
    const { store } = aStore()
    const input = Array.from({ length: 500 }, (_, n) => item(`${n}${'x'.repeat(10_000)}`))
    for (let n = 1; n <= 500; n++) put(store, `resp_${n}`, { input: input.slice(0, n) })
    expect(store.size).toBe(500)
    expect(store.bytes).toBeLessThan(2 * 500 * 10_000)
  })

  test('a chain of 20,000 is dropped in one go', () => {
    const { store, settings } = aStore()
    settings.responseStoreMiB = 1024
    let previous: StoredResponse | null = null
    for (let n = 0; n < 20_000; n++) previous = put(store, `resp_${n}`, { previous })
    expect(store.size).toBe(20_000)
    settings.responseStoreMinutes = 0
    store.sweep()
    expect([store.size, store.bytes]).toEqual([0, 0])
  })

  test('a response of more than 8 MiB is not stored, whether its request or its answer is that large', () => {
    const { store } = aStore()
    const large = 'x'.repeat(MAX_RESPONSE_BYTES)
    expect(store.record(aRequest({ input: [item(large)] }))).toBeNull()
    store.record(aRequest())?.finish(response('resp_1', [{ type: 'message', id: 'msg_1', content: large }]))
    expect([store.size, store.bytes]).toEqual([0, 0])
    expect(put(store, 'resp_2', { input: [item(large.slice(0, 7 * MIB))] })).not.toBeNull()
  })

  test('a request that is too large to be stored displaces nothing', () => {
    const { store } = aStore()
    put(store, 'resp_1', { input: [item('a')] })
    for (const mib of [9, 65, 100]) expect(store.record(aRequest({ input: [item('x'.repeat(mib * MIB))] }))).toBeNull()
    expect(store.get('key_1', 'resp_1')).not.toBeNull()
  })

  test('neither does one that is larger than the limit', () => {
    const { store, settings } = aStore()
    settings.responseStoreMiB = 1
    put(store, 'resp_1', { input: [item('a')] })
    expect(store.record(aRequest({ input: [item('x'.repeat(2 * MIB))] }))).toBeNull()
    store.record(aRequest())?.finish(response('resp_2', [{ type: 'message', content: 'x'.repeat(2 * MIB) }]))
    expect(store.get('key_1', 'resp_1')).not.toBeNull()
  })

  test('what running requests bring counts, too', () => {
    const { store, settings } = aStore()
    settings.responseStoreMiB = 10
    const running = ['a', 'b'].map((name) => store.record(aRequest({ input: [item(name + 'x'.repeat(6 * MIB))] })))
    expect(running.map((recording) => recording !== null)).toEqual([true, false])
    running[0]?.release()
    expect(store.bytes).toBe(0)
  })

  test('text beyond ASCII counts with two bytes a character', () => {
    const [ascii, other] = ['x', 'ж'].map((letter) => {
      const { store } = aStore()
      put(store, 'resp_1', { input: [item(letter.repeat(10_000))] })
      return store.bytes
    })
    expect(other! - ascii!).toBeGreaterThan(9_900)
  })
})

describe('time', () => {
  test('the oldest go first, by time and by memory', async () => {
    const { store, clock, settings } = aStore()
    for (const id of ['resp_1', 'resp_2', 'resp_3']) {
      put(store, id, { input: [item(id + 'x'.repeat(600 * 1024))] })
      await clock.advance(20 * MINUTE)
    }
    expect([1, 2, 3].map((n) => store.get('key_1', `resp_${n}`) !== null)).toEqual([false, true, true])
    settings.responseStoreMiB = 1
    store.sweep()
    expect([1, 2, 3].map((n) => store.get('key_1', `resp_${n}`) !== null)).toEqual([false, false, true])
  })

  test('what a request continues stays until it is answered', async () => {
    const { store, clock } = aStore()
    const previous = put(store, 'resp_1', { input: [item('a')] })
    const recording = store.record(aRequest({ previous, input: [item('b')] }))
    await clock.advance(61 * MINUTE)
    expect(store.get('key_1', 'resp_1')).toBeNull()
    recording?.finish(response('resp_2'))
    expect(textsOf(store.get('key_1', 'resp_2'))).toHaveLength(4)
  })

  test('a settled request that is finished afterwards is stored all the same, unless what it continues is gone', async () => {
    const { store, clock } = aStore()
    const previous = put(store, 'resp_1', { input: [item('a')] })
    const [soon, late] = ['b', 'c'].map((one) => store.record(aRequest({ previous, input: [item(one)] })))
    for (const recording of [soon, late]) recording?.release()
    soon?.finish(response('resp_2'))
    expect(textsOf(store.get('key_1', 'resp_2'))).toHaveLength(4)
    await clock.advance(61 * MINUTE)
    store.sweep()
    late?.finish(response('resp_3'))
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

test('whatever happens, memory stays within the limit, histories stay whole, and nothing is left in the end', () => {
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
          if (stored) expect(textsOf(stored)).toEqual(history)
        }
      }
      settings.responseStoreMinutes = 0
      store.sweep()
      expect([store.size, store.bytes]).toEqual([0, 0])
    }),
    200,
  )
})

const take = (store: ResponseStore, step: Extract<Step, { does: 'put' }>, histories: Map<string, string[]>): void => {
  const scope = `key_${step.scope}`
  const id = `resp_${step.id}`
  const previous = store.get(scope, `resp_${step.previous}`)
  const input = [item(`${step.bytes % 7}${'x'.repeat(step.bytes)}`)]
  const output = [
    { type: 'reasoning', id: `rs_${step.id}`, encrypted_content: 'e' },
    { type: 'function_call', id: `fc_${step.id}`, call_id: `call_${step.id}` },
  ]
  const history = [...textsOf(previous), ...input.map((one) => one.text), ...output.map((one) => JSON.stringify(one))]
  const before = store.get(scope, id)
  const itemIds = [`rs_${step.previous}`]
  const recording = store.record(aRequest({ scope, previous, input, itemIds, callIds: [`call_${step.previous}`] }))
  if (step.ends === 'chat') recording?.finishChat(response(id, output))
  else if (step.ends !== 'release') recording?.finish(response(id, output))
  recording?.release()
  if (store.get(scope, id) !== before) histories.set(`${scope} ${id}`, history)
}
