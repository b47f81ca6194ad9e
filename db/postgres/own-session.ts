/** Detects connection poolers that give each transaction a different session, which breaks notifications and locks. */
import type { SQL } from 'bun'
import type { Clock } from '../../src/lib/clock.ts'

/** All nodes use this channel, because a notification from any node proves the same. */
const CHECK_CHANNEL = 'sluice_check'
const WAIT_MS = 5000

/**
 * Sends a notification to this process and waits for it. If it does not arrive, rejects with a message for the
 * operator. This happens behind PgBouncer in transaction mode (www.pgbouncer.org/features.html).
 */
export async function requireOwnSession(sql: Pick<SQL, 'listen' | 'unsafe'>, clock: Clock): Promise<void> {
  const arrived = Promise.withResolvers<void>()
  const subscription = await sql.listen(CHECK_CHANNEL, () => arrived.resolve())
  const cancel = clock.after(WAIT_MS, () => arrived.reject(new Error(POOLED)))
  try {
    await sql.unsafe('SELECT pg_notify($1, $2)', [CHECK_CHANNEL, ''])
    await arrived.promise
  } finally {
    cancel()
    await subscription.unlisten()
  }
}

const POOLED =
  'PostgreSQL notifications do not arrive. There is probably a connection pooler in transaction mode in between, such ' +
  'as PgBouncer.'
