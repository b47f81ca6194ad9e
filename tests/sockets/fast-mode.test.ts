/** Fast mode while it is prohibited, on sockets. */
import { describe, expect, test } from 'bun:test'
import {
  create,
  expectCompleted,
  expectNothingLeft,
  getRefusal,
  leave,
  NATIVE,
  open,
  PUBLIC,
  startSocketWorld,
} from './ground.ts'

describe.each([NATIVE, PUBLIC])('%s', (path) => {
  test('strip: the tier is not sent, whatever its name', async () => {
    await using service = await startSocketWorld({ settings: { prohibitFastMode: 'strip' } })
    const socket = await open(service, { path })
    for (const service_tier of ['priority', 'fast', 'flex']) {
      expectCompleted(await socket.turn(create('hello', { service_tier })))
    }
    const tiers = service.upstream.requests.map(({ body }) => (body as { service_tier?: string }).service_tier) // as: a frame
    expect(tiers).toEqual([undefined, undefined, 'flex'])
    await leave(service, socket)
    await expectNothingLeft(service)
  })

  test('refuse: an error frame, and the socket stays open', async () => {
    await using service = await startSocketWorld({ settings: { prohibitFastMode: 'refuse' } })
    const socket = await open(service, { path })
    expect(getRefusal(await socket.turn(create('hello', { service_tier: 'priority' })))).toEqual([
      400,
      'fast_mode_prohibited',
    ])
    expect(service.upstream.requests).toEqual([])
    expectCompleted(await socket.turn(create('hello')))
    await leave(service, socket)
    await expectNothingLeft(service)
  })
})
