/**
 * The real Codex CLI while every account fails in the same way: upstream requests per prompt, with and without Sluice.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { createUpstream } from '../support/upstream/app.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'
import { installCodex } from './support/codex.ts'
import { startWorld } from './support/world.ts'

// Codex gives up on a failing service after half a minute.
setDefaultTimeout(180_000)

interface Cost {
  requests: number
  seconds: number
  complaint: string
}

const direct = async (fault: Fault, sockets: boolean): Promise<Cost> => {
  const upstream = createUpstream()
  const account = upstream.addAccount({})
  account.always(fault)
  const service = upstream.listen()
  const headers = { 'chatgpt-account-id': account.chatgptAccountId }
  const baseUrl = `${service.url}/backend-api/codex`
  try {
    await using codex = installCodex({ baseUrl, auth: { key: account.accessToken }, headers, sockets })
    const { seconds, complaints } = await codex.exec('hello')
    const requests = upstream.requests.filter(({ path }) => path.endsWith('/codex/responses')).length
    return { requests, seconds, complaint: complaints.at(-1) ?? '' }
  } finally {
    await service.stop()
  }
}

const throughSluice = async (fault: Fault, sockets: boolean): Promise<Cost> => {
  await using world = await startWorld()
  for (const account of world.upstream.accounts) account.always(fault)
  await using codex = installCodex({ baseUrl: `${world.url}/backend-api/codex`, auth: { key: world.key }, sockets })
  const { seconds, complaints } = await codex.exec('hello')
  return { requests: world.turns().length, seconds, complaint: complaints.at(-1) ?? '' }
}

/** At the same time: the CLI mostly waits between its retries, and both have the same share of the machine. */
const both = (fault: Fault, sockets: boolean) => Promise.all([direct(fault, sockets), throughSluice(fault, sockets)])

const FAILED_EVENT: Fault = { failAfterCreated: { code: 'server_is_overloaded', message: 'Overloaded.' } }

test.each([
  ['a status over HTTP', faults.overloaded(), false],
  ['an event over sockets', FAILED_EVENT, true],
] as const)('an overloaded model, reported by %s, reaches the user within seconds', async (name, fault, sockets) => {
  const [without, cost] = await both(fault, sockets)
  if (process.env.SHOW_FIGURES) console.info('overloaded,', name, { sockets, without, cost })
  expect(cost.complaint).toBe(without.complaint)
  expect(cost.requests).toBeLessThanOrEqual(12)
  expect(cost.seconds - without.seconds).toBeLessThan(10)
})

test('a 500 or a reset forever costs the upstream at most half more requests than without Sluice', async () => {
  const cases = [
    { fault: faults.serverError(), sockets: false },
    { fault: { reset: true }, sockets: true },
  ]
  const costs = await Promise.all(cases.map(({ fault, sockets }) => both(fault, sockets)))
  for (const [without, cost] of costs) {
    if (process.env.SHOW_FIGURES) console.info({ without, cost })
    expect(cost.requests).toBeLessThanOrEqual(1.5 * without.requests)
  }
})
