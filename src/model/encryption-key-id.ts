/** Records which encryption key the secrets of a database are sealed with. */
import type { Db, Tx } from '../../db/commit.ts'
import { facts } from '../../db/schema/system.ts'
import { readFact } from './facts.ts'

const NAME = 'encryption_key_fingerprint'

/** The fingerprint of the key used for `db`; null: nothing has been sealed. */
export const getEncryptionKeyId = (db: Db): Promise<string | null> => readFact(db, NAME)

/** Stores `fingerprint` unless another process already has; returns the stored one. */
export const claimEncryptionKeyId = async (tx: Tx, fingerprint: string): Promise<string | null> => {
  await tx.insert(facts).values({ name: NAME, value: fingerprint }).onConflictDoNothing().run()
  return getEncryptionKeyId(tx)
}
