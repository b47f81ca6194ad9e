/** Listeners are called in order, and one that throws does not stop the others. */
import { expect, test } from 'bun:test'
import { Signal } from '../../src/settings/cache.ts'

test('every listener gets every later value until it unsubscribes', () => {
  const signal = new Signal<number>(() => {})
  const heard: string[] = []
  const listen = (value: number) => heard.push(`same ${value}`)
  signal.emit(0)
  const stop = signal.on(listen)
  signal.on(listen)
  signal.emit(1)
  stop()
  stop()
  signal.emit(2)
  expect(heard).toEqual(['same 1', 'same 1', 'same 2'])
})

test('a listener that throws is reported and the others are called', () => {
  const errors: unknown[] = []
  const signal = new Signal<string>((error) => errors.push(error))
  const heard: string[] = []
  signal.on(() => {
    throw new Error('bad')
  })
  signal.on((value) => heard.push(value))
  signal.emit('a')
  expect(heard).toEqual(['a'])
  expect(errors).toEqual([new Error('bad')])
})

test('listeners removed during a call are skipped, added ones wait for the next', () => {
  const signal = new Signal<number>(() => {})
  const heard: string[] = []
  signal.on((value) => {
    stop()
    if (value === 1) signal.on((next) => heard.push(`new ${next}`))
  })
  const stop = signal.on(() => heard.push('removed'))
  signal.emit(1)
  signal.emit(2)
  expect(heard).toEqual(['new 2'])
})
