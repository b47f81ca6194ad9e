/** Up to where a fresh stream is read before its first bytes go to the client. */
import { expect, test } from 'bun:test'
import { type FreshStream, readToCommit } from '../../src/proxy/first-events.ts'
import { newTurnLog, type Turn } from '../../src/proxy/turn.ts'
import { FrameEvent } from '../../src/upstream/frame-event.ts'
import { testApp } from '../support/app.ts'

test('events that say nothing yet are held up to 64 KiB, and then taken as they are', async () => {
  const { plane } = testApp().bindings
  const event = new FrameEvent(JSON.stringify({ type: 'response.in_progress', padding: 'x'.repeat(40 * 1024) }))
  let reads = 0
  const stream = {
    read: async () => {
      reads++
      return reads > 9 ? null : [event]
    },
  }
  const lease = { account: plane.pool.all()[0]!, release: () => {} }
  const turn = { signal: new AbortController().signal, arrivedAt: 0, log: newTurnLog(), body: null }
  const fresh = { lease, stream, controller: new AbortController(), headers: {}, accessToken: 'at' }
  const flow = await readToCommit(plane, turn as unknown as Turn, fresh as unknown as FreshStream) // as: no more of them is read
  expect([reads, flow.first()?.length]).toEqual([3, 3])
})
