/** Runs one job on a real data folder immediately: `usage`, `window`, `reset` or `automation`. */

import { commit } from '../../db/commit.ts'
import { createPasswords } from '../../src/auth/passwords.ts'
import { buildBindings } from '../../src/boot/build-bindings.ts'
import { readConfig } from '../../src/boot/env.ts'
import { openFolder } from '../../src/cli/open-folder.ts'
import { automationsJob } from '../../src/jobs/automations.ts'
import { redeemByRule } from '../../src/jobs/redeem-by-rule.ts'
import { pollResetCredits } from '../../src/jobs/reset-credits.ts'
import { pollUsage } from '../../src/jobs/usage.ts'
import { windowStartsJob } from '../../src/jobs/window-starts.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { systemRandom } from '../../src/lib/random.ts'
import { createAutomation, listAutomations } from '../../src/model/automations/automations.ts'
import { pingForJob } from '../../src/proxy/relay/ping.ts'
import { createDial } from '../../src/upstream/dial.ts'
import { createInlineReader } from '../support/inline-reader.ts'
import { inlineReplays } from '../support/inline-replays.ts'

const config = readConfig(process.env)
const [clock, random] = [systemClock, systemRandom]
const folder = await openFolder(config, { clock, random })
const bindings = await buildBindings({
  config,
  folder,
  clock,
  random,
  log: createLog({ level: 'warn', format: 'text', now: clock.now, write: (line) => process.stderr.write(line) }),
  passwords: await createPasswords(),
  dial: createDial({}, fetch, { trustsSocketEnvironment: false, random }),
  reader: createInlineReader(folder.db),
  startReplay: inlineReplays(folder.db),
  maxTurns: 100,
  timeout: (ms) => AbortSignal.timeout(ms),
})
const { db, pool, catalog, log, proxyDeps, resetCredits, settings } = bindings
const { upstream, credentials } = proxyDeps
const deps = { db, pool, catalog, clock, log, upstream, credentials, polls: new Map(), resetCredits, settings, random }
const { signal } = new AbortController()
const EVERY_DAY = {
  ...{
    name: 'Every day',
    enabled: true,
    kind: 'ping',
    model: null,
    effort: null,
    prompt: 'ping',
    includePaused: false,
  },
  ...{ zone: 'UTC', days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'], spreadMinutes: 0, accountIds: null },
} satisfies Partial<Parameters<typeof createAutomation>[1]>
const currentTime = () => new Date(clock.now()).toISOString().slice(11, 16)

await pollUsage(deps, signal)
await bindings.ledger.flush()
if (process.argv[2] === 'window')
  await windowStartsJob({
    ...bindings,
    ping: (wanted, stop) => pingForJob(bindings, { ...wanted, route: 'window-start' }, stop),
  })(signal)
if (process.argv[2] === 'automation') {
  // Created yesterday, for this minute.
  const actor = { id: 'test', method: null, address: null, at: clock.now() - 24 * 3_600_000 }
  if ((await listAutomations(db)).length === 0)
    await commit(db, (tx) => createAutomation(tx, { ...EVERY_DAY, time: currentTime() }, { actor, random }))
  await automationsJob({
    ...bindings,
    ping: ({ includePaused, ...wanted }, stop) => pingForJob(bindings, { ...wanted, route: 'automation' }, stop),
    readUsage: async () => {},
  })(signal)
}
if (process.argv[2] === 'reset')
  await pollResetCredits({ ...deps, redeemByRule: (id) => redeemByRule(deps, id) }, new Map(), signal)
await pool.stop()
await bindings.ledger.flush()
process.exit(0)
