/** `/api/usage`: what is left of the pool's windows, for companion tools that sign in. */
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import { accountsLeft, getUsed, HistoryQuery, poolSummary, WindowQuery } from '../model/overview/pool-history.ts'
import { toReader } from './reader-for-caller.ts'

export const showUsageSummary = createHandlers(requires('accounts:read'), async (c) => {
  const now = c.env.clock.now()
  return c.json(poolSummary(c.env.pool.all(), await toReader(c).poolWeek(now), now))
})

/** Averages of the five-hour windows. */
export const showUsageHistory = createHandlers(requires('accounts:read'), query(HistoryQuery), async (c) => {
  const { hours } = c.req.valid('query')
  const used = await toReader(c).sampledUse({ hours, now: c.env.clock.now() })
  const accounts = accountsLeft(c.env.pool.all(), 'fiveHour', ({ id }) => used.get(id) ?? null)
  return c.json({ windowHours: hours, accounts })
})

const WINDOWS = { primary: ['fiveHour', 300], secondary: ['weekly', 10_080] } as const

export const showUsageWindow = createHandlers(requires('accounts:read'), query(WindowQuery), (c) => {
  const { window } = c.req.valid('query')
  const [length, windowMinutes] = WINDOWS[window]
  const accounts = accountsLeft(c.env.pool.all(), length, getUsed(length, c.env.clock.now()))
  return c.json({ windowKey: window, windowMinutes, accounts })
})
