/** The limits a client sees on a socket: in the handshake and first in every request, the same figures as over HTTP. */
import { describe, expect, test } from 'bun:test'
import { HOUR_MS } from '../../src/lib/durations.ts'
import { create, expectCompleted, leave, NATIVE, open, PUBLIC, type SocketWorld, startSocketWorld } from './ground.ts'

const inHours = (hours: number) => Math.floor(Date.now() / HOUR_MS + hours) * HOUR_MS
const usage = (fiveHour: number) => ({
  primary: { usedPercent: fiveHour, windowMinutes: 300, resetAt: inHours(3) },
  secondary: { usedPercent: 40, windowMinutes: 10_080, resetAt: inHours(90) },
})
const TWO = [{ usage: usage(80) }, { usage: usage(20) }]

const refreshed = async (service: SocketWorld, key: string): Promise<void> => {
  const headers = { authorization: `Bearer ${key}` }
  await fetch(`${service.url}/api/fleet/refresh`, { method: 'POST', headers })
}

const turnOn = async (service: SocketWorld, { path = NATIVE, key }: { path?: string; key: string }) => {
  const socket = await open(service, { path, headers: { authorization: `Bearer ${key}` } })
  const events = await socket.turn(create())
  expectCompleted(events)
  await leave(service, socket)
  return { handshake: socket.opened.headers['x-codex-primary-used-percent'], events, text: JSON.stringify(events) }
}

const usedIn = (event: unknown) => (event as RateEvent).rate_limits.primary // as: shown by the tests

interface RateEvent {
  rate_limits: { primary: { used_percent: number; reset_at: number } }
}

describe('a native socket', () => {
  test.each([false, true])(
    'shows the pool before the first event of a request; upstream sends its own: %p',
    async (own) => {
      await using service = await startSocketWorld({ accounts: TWO })
      const { key } = await service.key()
      await refreshed(service, key)
      for (const { sim } of service.members) sim.always({ rateLimitsEvent: own })
      const { handshake, events, text } = await turnOn(service, { key })
      expect(handshake).toBe('50')
      expect(events[0]).toMatchObject({
        type: 'codex.rate_limits',
        rate_limits: { allowed: true, limit_reached: false },
      })
      expect(
        events.filter(({ type }) => type === 'codex.rate_limits').map((event) => usedIn(event).used_percent),
      ).toEqual([50])
      expect(text).not.toContain('plan_type')
      const http = await fetch(service.url + NATIVE, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(create()),
      })
      await http.text()
      expect(http.headers.get('x-codex-primary-used-percent')).toBe('50')
      expect(http.headers.get('x-codex-primary-reset-at')).toBe(String(usedIn(events[0]).reset_at))
    },
  )

  test('hidden: neither handshake nor event', async () => {
    await using service = await startSocketWorld({ accounts: TWO, settings: { clientRateLimits: 'hidden' } })
    const { key } = await service.key()
    await refreshed(service, key)
    for (const { sim } of service.members) sim.always({ rateLimitsEvent: true })
    const { handshake, text } = await turnOn(service, { key })
    expect([handshake, text.includes('codex.rate_limits')]).toEqual([undefined, false])
  })

  test('account: the unchanged event of the account, without its plan', async () => {
    await using service = await startSocketWorld({
      accounts: [{ usage: usage(80) }],
      settings: { clientRateLimits: 'account' },
    })
    const { key } = await service.key()
    service.members[0]?.sim.always({ rateLimitsEvent: true })
    const { handshake, events, text } = await turnOn(service, { key })
    const shown = events.filter(({ type }) => type === 'codex.rate_limits')
    expect([handshake, shown.map((event) => usedIn(event).used_percent)]).toEqual([undefined, [80]])
    expect(text).not.toContain('plan_type')
  })

  test('a key with its own limits: those, and a later request shows the use of the earlier one', async () => {
    await using service = await startSocketWorld({ accounts: TWO })
    const { key } = await service.key({
      limits: [{ limitType: 'requests', limitWindow: '5h', maxValue: 4, modelFilter: '' }],
    })
    const socket = await open(service, { headers: { authorization: `Bearer ${key}` } })
    expect(socket.opened.headers['x-codex-primary-used-percent']).toBe('0')
    const shown: number[] = []
    for (let n = 0; n < 3; n++) shown.push(usedIn((await socket.turn(create()))[0]).used_percent)
    expect(shown).toEqual([0, 25, 50])
    await leave(service, socket)
  })
})

test('a socket of /v1 has no such event', async () => {
  await using service = await startSocketWorld({ accounts: TWO })
  const { key } = await service.key()
  await refreshed(service, key)
  for (const { sim } of service.members) sim.always({ rateLimitsEvent: true })
  const { handshake, text } = await turnOn(service, { path: PUBLIC, key })
  expect([handshake, text.includes('codex.')]).toEqual([undefined, false])
})
