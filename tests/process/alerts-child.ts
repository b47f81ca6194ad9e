/**
 * The two alert jobs on a real data folder, on a clock that runs 60 times as fast. Whether the accounts need
 * sign-in is in a file of the test.
 */
import { readFileSync } from 'node:fs'
import { createPasswords } from '../../src/auth/passwords.ts'
import { buildBindings } from '../../src/boot/build-bindings.ts'
import { readConfig } from '../../src/boot/env.ts'
import { openFolder } from '../../src/cli/open-folder.ts'
import { alertDeliveriesJob, sendUnstored } from '../../src/jobs/alert-deliveries.ts'
import { alertJobs } from '../../src/jobs/alerts.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { createLog } from '../../src/lib/log.ts'
import { systemRandom as random } from '../../src/lib/random.ts'
import { createDial } from '../../src/upstream/dial.ts'
import { createInlineReader } from '../support/inline-reader.ts'
import { inlineReplays } from '../support/inline-replays.ts'
import { anAccount } from '../views/samples.ts'

const SPEED = 60
const BEGAN = Date.UTC(2026, 0, 1)

const clock: Clock = {
  ...systemClock,
  now: () => Math.round(BEGAN + (systemClock.now() - BEGAN) * SPEED),
  monotonic: () => systemClock.monotonic() * SPEED,
}
const [, , downPath = '', accounts] = process.argv
const config = readConfig(process.env)
const folder = await openFolder(config, { clock: systemClock, random })
const bindings = await buildBindings({
  config,
  folder,
  clock,
  random,
  log: createLog({ level: 'error', format: 'text', now: clock.now, write: (line) => process.stderr.write(line) }),
  passwords: await createPasswords(),
  dial: createDial({}, fetch, { trustsSocketEnvironment: false, random }),
  reader: createInlineReader(folder.db),
  startReplay: inlineReplays(folder.db),
  maxTurns: 100,
  timeout: (ms) => AbortSignal.timeout(ms),
})
const accountsNow = () => {
  const isDown = readFileSync(downPath, 'utf8') === 'down'
  return Array.from({ length: Number(accounts) }, (_, n) =>
    anAccount({ accountId: `acc_${n}`, alias: `team-${n}`, displayName: `team-${n}`, ...(isDown && GONE) }),
  )
}
const GONE = { status: 'reauth_required', eligible: false } as const
const deps = { ...bindings, pool: { get: () => null, describe: accountsNow } }
const { evaluate } = alertJobs({ ...deps, sendUnstored: sendUnstored(deps) })
const deliver = alertDeliveriesJob(deps)
const { signal } = new AbortController()
for (;;) {
  await evaluate(signal)
  await deliver(signal)
  await Bun.sleep(5000 / SPEED)
}
