/** Which key the secrets of a database are sealed with, as the database says it. */
import type { Db, Tx } from '../../db/commit.ts'
import { facts } from '../../db/schema/system.ts'
import { readFact } from './facts.ts'

const NAME = 'encryption_key_fingerprint'

/** The fingerprint of the key the secrets of `db` are sealed with; null: none was sealed yet. */
export const fingerprintOf = (db: Db): string | null => readFact(db, NAME)

/** Writes `fingerprint` down unless another process did a moment ago; returns the one that stands. */
export const claimFingerprint = (tx: Tx, fingerprint: string): string | null => {
  tx.insert(facts).values({ name: NAME, value: fingerprint }).onConflictDoNothing().run()
  return fingerprintOf(tx)
}
