/** A caller that stops waiting does not affect the work and leaves nothing behind. */
import { expect, test } from 'bun:test'
import { untilAborted } from '../../src/lib/until-aborted.ts'

test('an available value is returned without waiting', () => {
  expect(untilAborted(7, AbortSignal.abort())).toBe(7)
})

test('the outcome of the work passes through', async () => {
  const { signal } = new AbortController()
  expect(await untilAborted(Promise.resolve(7), signal)).toBe(7)
  expect(Promise.resolve(untilAborted(Promise.reject(new Error('no')), signal))).rejects.toThrow('no')
})

test('an abort ends the wait, before it or during it; a later failure of the work is ignored', async () => {
  const work = Promise.withResolvers<number>()
  const controller = new AbortController()
  const waiting = Promise.resolve(untilAborted(work.promise, controller.signal))
  controller.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
  await expect(Promise.resolve(untilAborted(work.promise, controller.signal))).rejects.toThrow('gone')
  work.reject(new Error('late'))
  await Bun.sleep(0)
})
