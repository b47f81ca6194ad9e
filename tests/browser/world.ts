/** A server with data for the dashboard: an account in each state, and a few requests. */

import { startWorld, type World } from '../clients/support/world.ts'
import { eventsUntilEnd, sendTurn } from '../process/world.ts'
import { until } from '../support/until.ts'
import type { Usage } from '../support/upstream/accounts.ts'
import { faults } from '../support/upstream/faults.ts'

const HOUR_MS = 3_600_000

const usage = (fiveHourPercent: number, weekPercent: number): Usage => ({
  primary: { usedPercent: fiveHourPercent, windowMinutes: 300, resetAt: Date.now() + 2.2 * HOUR_MS },
  secondary: { usedPercent: weekPercent, windowMinutes: 10_080, resetAt: Date.now() + 75 * HOUR_MS },
})

interface SeenAccount {
  accountId: string
  email: string
  status: string
  usageAt: string | null
}

/** Ada, Grace and Alan serve; Linus has used up his allowance, Edsger reports no window, Barbara must sign in, Tony is paused. */
export const startPopulated = async (): Promise<World> => {
  const world = await startWorld({
    accounts: [
      { email: 'ada@example.test', plan: 'pro', usage: usage(12, 31) },
      { email: 'grace@example.test', plan: 'plus', usage: usage(64, 48) },
      { email: 'alan@example.test', plan: 'team', usage: usage(97, 82) },
      { email: 'linus@example.test', plan: 'plus', usage: usage(99, 60) },
      { email: 'edsger.wybe.dijkstra.with.a.long.name@mathematics.example.test', plan: 'edu', usage: {} },
      { email: 'barbara@example.test', plan: 'team' },
      { email: 'tony@example.test', plan: 'plus', usage: usage(20, 20) },
    ],
  })
  try {
    await bringAbout(world)
    return world
  } catch (error) {
    await world[Symbol.asyncDispose]()
    throw error
  }
}

/** One native turn, in the log when this resolves. */
export const sendTestRequest = async ({ url, key, api, output }: World): Promise<void> => {
  const before = await logged(api)
  await eventsUntilEnd(await sendTurn(url, key))
  await until(async () => (await logged(api)) > before, output)
}

const logged = async (api: World['api']): Promise<number> =>
  (await api<{ total: number }>('GET', '/api/request-logs?limit=1')).total

const bringAbout = async (world: World): Promise<void> => {
  const { api, upstream } = world
  const accounts = async () => (await api<{ accounts: SeenAccount[] }>('GET', '/api/accounts')).accounts
  const find = async (name: string) => {
    const account = (await accounts()).find(({ email }) => email.startsWith(name))
    if (!account) throw new Error(`There is no account of ${name}.`)
    return account
  }
  await until(async () => (await accounts()).filter(({ usageAt }) => usageAt !== null).length >= 6, world.output)
  upstream.accounts
    .find(({ email }) => email.startsWith('linus'))
    ?.always(faults.usageLimit({ resetsAt: Date.now() + 2.2 * HOUR_MS }))
  const { accountId } = await find('linus')
  await api('PATCH', '/api/settings', { routingStrategy: 'single_account', singleAccountId: accountId })
  await sendTestRequest(world)
  upstream.accounts.find(({ email }) => email.startsWith('linus'))?.setUsage(usage(100, 60)) // what later polls report
  upstream.accounts.find(({ email }) => email.startsWith('barbara'))?.revoke('token_invalidated')
  const barbara = (await find('barbara')).accountId
  await api('PATCH', '/api/settings', { singleAccountId: barbara })
  await sendTestRequest(world)
  await api('PATCH', '/api/settings', { routingStrategy: 'capacity_weighted', singleAccountId: null })
  await api('POST', `/api/accounts/${(await find('tony')).accountId}/pause`)
  for (let turns = 0; turns < 3; turns += 1) await sendTestRequest(world)
}
