/** Who owns what outlives changes of the database that have nothing to do with it. */
import { expect, test } from 'bun:test'
import { announceAll } from '../../db/commit.ts'
import { AffinityMap } from '../../src/proxy/affinity.ts'
import { testApp } from '../support/app.ts'
import { testDb } from '../support/db.ts'

const HOUR_MS = 3_600_000

test('a commit of another process does not make it read everything again', () => {
  const app = testApp()
  const { affinity } = app.bindings
  const now = app.clock.now()
  affinity.remember('conversation', 'in memory only', app.members[0]!.id, { now, mixed: false })
  announceAll(app.db)
  expect(affinity.get('conversation', 'in memory only', now, HOUR_MS)).not.toBeNull()
})

test('what an account owned goes with it, by whatever door it left', () => {
  const app = testApp({ accounts: 2 })
  const { affinity } = app.bindings
  const [gone, here] = app.members as [(typeof app.members)[0], (typeof app.members)[0]]
  const now = app.clock.now()
  affinity.remember('conversation', 'a', gone.id, { now, mixed: false })
  affinity.remember('ciphertext', 'b', gone.id, { now, mixed: false })
  affinity.remember('conversation', 'c', here.id, { now, mixed: false })
  app.sqlite.run('DELETE FROM accounts WHERE id = ?', [gone.id])
  announceAll(app.db)
  expect(affinity.counts()).toEqual({ conversation: 1, ciphertext: 0 })
})

test('each kind has its own share of memory, the latest first', () => {
  const { db, sqlite } = testDb()
  sqlite.run(`INSERT INTO accounts (id, email, plan_type, access_token_sealed, refresh_token_sealed, id_token_sealed,
    last_refresh_at, created_at) VALUES ('acc', 'a', 'plus', '', '', '', 0, 0)`)
  const insert = sqlite.prepare('INSERT INTO affinity (kind, key_hash, account_id, used_at) VALUES (?, ?, ?, ?)')
  for (let n = 0; n < 12; n++) insert.run('ciphertext', `c${n}`, 'acc', 1000 + n)
  insert.run('conversation', 'old', 'acc', 1)
  const affinity = new AffinityMap(5)
  affinity.load(db)
  expect(affinity.counts()).toEqual({ conversation: 1, ciphertext: 5 })
  expect(affinity.get('ciphertext', 'c11', 1000, HOUR_MS)).not.toBeNull()
  expect(affinity.get('ciphertext', 'c6', 1000, HOUR_MS)).toBeNull()
  affinity.remember('ciphertext', 'new', 'acc', { now: 2000, mixed: false })
  expect(affinity.get('ciphertext', 'c7', 1000, HOUR_MS)).toBeNull() // the oldest made room
})
