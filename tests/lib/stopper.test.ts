/** A stop signal calls each listener once, in order. */
import { describe, expect, spyOn, test } from 'bun:test'
import { Stopper, type StopSignal } from '../../src/lib/stopper.ts'

const kinds: [string, () => { signal: StopSignal; abort: (reason: unknown) => void }][] = [
  ['ours', () => new Stopper()],
  ['an AbortController', () => new AbortController()],
]

test('a listener that throws is reported, and the others are called', () => {
  using reported = spyOn(globalThis, 'reportError').mockImplementation(() => {})
  const stopper = new Stopper()
  const told: string[] = []
  const fault = new Error('of the first')
  stopper.signal.addEventListener('abort', () => {
    throw fault
  })
  stopper.signal.addEventListener('abort', () => void told.push('second'))
  stopper.abort('because')
  expect(told).toEqual(['second'])
  expect(reported.mock.calls).toEqual([[fault]])
})

describe.each(kinds)('%s', (_name, make) => {
  test('calls each listener once, in order, with the reason', () => {
    const stopper = make()
    const told: string[] = []
    stopper.signal.addEventListener('abort', () => told.push('first'))
    stopper.signal.addEventListener('abort', { handleEvent: () => void told.push(`second ${stopper.signal.reason}`) })
    expect([stopper.signal.aborted, stopper.signal.reason]).toEqual([false, undefined])
    stopper.abort('because')
    stopper.abort('again')
    expect(told).toEqual(['first', 'second because'])
    expect([stopper.signal.aborted, stopper.signal.reason]).toEqual([true, 'because'])
  })

  test('calls a listener added twice only once, and none added during the call', () => {
    const stopper = make()
    const told: string[] = []
    const twice = () => {
      told.push('twice')
      stopper.signal.addEventListener('abort', () => void told.push('while it tells'))
    }
    stopper.signal.addEventListener('abort', twice)
    stopper.signal.addEventListener('abort', twice)
    stopper.abort('because')
    expect(told).toEqual(['twice'])
  })

  test('does not call removed listeners, also during the call, nor late ones', () => {
    const stopper = make()
    const told: string[] = []
    const left = () => void told.push('left before')
    const late = () => void told.push('left meanwhile')
    stopper.signal.addEventListener('abort', left)
    stopper.signal.addEventListener('abort', () => {
      told.push('stays')
      stopper.signal.removeEventListener('abort', late)
    })
    stopper.signal.addEventListener('abort', late, { once: true })
    stopper.signal.removeEventListener('abort', left)
    stopper.signal.removeEventListener('abort', () => {})
    stopper.abort('because')
    stopper.signal.addEventListener('abort', () => void told.push('too late'))
    stopper.abort('again')
    expect(told).toEqual(['stays'])
  })
})
