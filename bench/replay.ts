/**
 * How long a replay of 100,000 requests takes: `bun bench/replay.ts [accounts] [conversations]`. Requests are spread
 * evenly over 28 days, and the plans have capacity for nine tenths of them.
 */

import { seededFloats } from '../src/lib/random.ts'
import { strategyOutcomes } from '../src/proxy/replay/compare-strategies.ts'
import type { ReplayWorld } from '../src/proxy/replay/simulate.ts'
import { STRATEGIES } from '../src/settings/schema.ts'
import { account, DAY, HOUR } from '../tests/proxy/replay/world.ts'

const REQUESTS = 100_000
const [accountCount = 10, conversations = 6000] = process.argv.slice(2).map(Number)

const random = seededFloats(1)

const WINDOWS = {
  fiveHour: { credits: 225, lengthMs: 5 * HOUR, usedCredits: 0, resetAt: null },
  long: { length: 'weekly', credits: 7560, lengthMs: 7 * DAY, usedCredits: 0, resetAt: null },
} as const

const world: ReplayWorld = {
  accounts: Array.from({ length: accountCount }, (_, n) => account(`account-${n}`, WINDOWS)),
  arrivals: Array.from({ length: REQUESTS }, (_, n) => ({
    at: Math.floor((n * 28 * DAY) / REQUESTS),
    durationMs: 20_000,
    conversation: conversations === 0 ? null : Math.floor((n / REQUESTS) * conversations + random() * 8),
    model: 'gpt-5.5',
    key: null,
    short: 0.27 * accountCount,
    long: 0.27 * accountCount,
  })),
  from: 0,
  to: 28 * DAY,
  policy: {
    strategy: 'capacity_weighted',
    singleAccountId: null,
    relativePower: 2,
    relativeTopK: 5,
    preferEarlierReset: true,
    paidCredits: 'last',
    inFlightPenaltyPercent: 2.5,
    rates: { short: 1, long: 1 },
  },
  affinityMs: 30 * DAY,
}

const start = { at: performance.now(), cpu: process.cpuUsage() }
for (const strategy of STRATEGIES) {
  const before = process.cpuUsage()
  const [first] = strategyOutcomes(world, strategy, { seed: 1, onProgress: () => {} })
  console.log(strategy, `${Math.round(process.cpuUsage(before).user / 1000)} ms CPU`, `${first?.rejected} rejected`)
}
const cpu = process.cpuUsage(start.cpu)
const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
console.log(
  `${REQUESTS} requests, ${accountCount} accounts, ${STRATEGIES.length} strategies, 20 seeds: ` +
    `${seconds((cpu.user + cpu.system) / 1000)} CPU, ${seconds(performance.now() - start.at)} elapsed`,
)
