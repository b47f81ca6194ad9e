/** Account states that are being stored: whenever they are read, each event counts once. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeWith } from '../../db/commit.ts'
import { type Connection, commitCounting, onThisThread } from '../../db/connection.ts'
import { migrate } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { openDatabase } from '../../db/open.ts'
import { createLog } from '../../src/lib/log.ts'
import type { AccountEvent } from '../../src/model/accounts/account-state.ts'
import { getAccount } from '../../src/model/accounts/accounts.ts'
import { StateWriter } from '../../src/proxy/pool/state-writer.ts'
import { ManualClock } from '../support/clock.ts'
import { anAccountRow } from '../support/keys.ts'

const ACCOUNT = 'acc_a'
const START = Date.UTC(2026, 0, 1)
const LIMITED = { kind: 'rate_limited', at: START, evidence: '', resetAt: null, retryAfterMs: null } as const
const FAILED_CHECK = { kind: 'checked', at: START, ok: false } as const

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

const turnsOfLoop = async (count = 10) => {
  for (let n = 0; n < count; n++) await new Promise<void>((resolve) => setImmediate(resolve))
}

/** The answer to COMMIT arrives only after `release`, as from a thread; with `error` it is not run at all. */
const setUp = async (error?: Error) => {
  const dir = mkdtempSync(join(tmpdir(), 'states-'))
  const { sqlite, db } = openDatabase(join(dir, 'sluice.db'))
  cleanUps.push(() => {
    sqlite.close()
    rmSync(dir, { recursive: true })
  })
  migrate(sqlite, MIGRATIONS, START)
  await anAccountRow(db, ACCOUNT)
  const own = onThisThread(() => sqlite)
  const gate = Promise.withResolvers<void>()
  let isCommitted = false
  const connection: Connection = {
    call: async (procedure, args) => {
      if (procedure !== (commitCounting as unknown)) return own.call(procedure, args)
      const value = error ? null : await own.call(procedure, args)
      isCommitted = true
      await gate.promise
      if (error) throw error
      return value as never // as: of `commitCounting`
    },
  }
  writeWith(db, connection)
  const log = createLog({ level: 'error', format: 'text', now: () => 0, write: () => {} })
  const states = new StateWriter({ db, clock: new ManualClock(START), log })
  const read = async () => states.present(await states.consistent(() => getAccount(db, ACCOUNT)))
  const store = async (...events: AccountEvent[]) => {
    for (const event of events) states.event(ACCOUNT, event)
    const stored = states.flush()
    while (!isCommitted) await turnsOfLoop(1)
    return { stored }
  }
  return { states, read, store, release: gate.resolve }
}

test.each([
  ['a failed check', [LIMITED, FAILED_CHECK], { status: 'rate_limited', attempts: 2 }],
  ['several failed checks', [LIMITED, FAILED_CHECK, FAILED_CHECK], { status: 'rate_limited', attempts: 3 }],
  [
    'a limit after another has ended',
    [LIMITED, { kind: 'tick', at: START + 120_000 }, { ...LIMITED, at: START + 120_000 }, FAILED_CHECK],
    { status: 'rate_limited', attempts: 3 },
  ],
] satisfies [string, AccountEvent[], object][])(
  'read between COMMIT and its answer, %s counts once',
  async (_, events, state) => {
    const { read, store, release } = await setUp()
    const { stored } = await store(...events)
    const seen: unknown[] = []
    const reading = read().then(({ state }) => seen.push(state))
    await turnsOfLoop()
    release()
    await Promise.all([stored, reading])
    expect(seen).toMatchObject([state])
    expect((await read()).state).toMatchObject(state)
  },
)

test('if COMMIT fails, events that could not be stored still count once', async () => {
  const { read, store, release } = await setUp(new Error('disk full'))
  const { stored } = await store(LIMITED, FAILED_CHECK)
  const reading = read()
  await turnsOfLoop()
  release()
  await stored
  expect((await reading).state).toMatchObject({ status: 'rate_limited', attempts: 2 })
})
