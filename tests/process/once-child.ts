/** One round of the jobs of a real data folder, without waiting for their times: `usage`, `window` or `reset`. */
import { createPasswords } from '../../src/auth/passwords.ts'
import { buildBindings } from '../../src/build-bindings.ts'
import { openFolder } from '../../src/cli/open-folder.ts'
import { readConfig } from '../../src/env.ts'
import { redeemByRule } from '../../src/jobs/redeem-by-rule.ts'
import { pollResetCredits } from '../../src/jobs/reset-credits.ts'
import { pollUsage } from '../../src/jobs/usage.ts'
import { windowStartsJob } from '../../src/jobs/window-starts.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { systemRandom } from '../../src/lib/random.ts'
import { pingForJob } from '../../src/proxy/relay/ping.ts'
import { createDial } from '../../src/upstream/dial.ts'
import { createInlineReader } from '../support/inline-reader.ts'

const config = readConfig(process.env)
const [clock, random] = [systemClock, systemRandom]
const folder = openFolder(config, { clock, random })
const bindings = buildBindings({
  config,
  folder,
  clock,
  random,
  log: createLog({ level: 'warn', format: 'text', now: clock.now, write: (line) => process.stderr.write(line) }),
  passwords: await createPasswords(),
  dial: createDial({}, fetch, { trustsSocketEnvironment: false, random }),
  reader: createInlineReader(folder.db),
  checkpointer: null,
  maxTurns: 100,
  timeout: (ms) => AbortSignal.timeout(ms),
})
const { db, pool, catalog, log, plane, resetCredits, settings } = bindings
const { upstream, credentials } = plane
const deps = { db, pool, catalog, clock, log, upstream, credentials, polls: new Map(), resetCredits, settings, random }
const { signal } = new AbortController()

await pollUsage(deps, signal)
bindings.ledger.flush()
if (process.argv[2] === 'window')
  await windowStartsJob({ ...bindings, ping: (wanted, stop) => pingForJob(bindings, wanted, stop) })(signal)
if (process.argv[2] === 'reset')
  await pollResetCredits({ ...deps, redeemByRule: (id) => redeemByRule(deps, id) }, new Map(), signal)
pool.stop()
bindings.ledger.flush()
process.exit(0)
