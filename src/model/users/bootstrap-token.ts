/** The token for setting the first password from another machine: created once, stored hashed, used once. */
import { createHash } from 'node:crypto'
import { and, eq } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { facts } from '../../../db/schema/system.ts'
import type { Random } from '../../lib/random.ts'
import { type Actor, append } from '../audit/audit.ts'
import { dropFact, readFact, writeFact } from '../facts.ts'

const NAME = 'bootstrap_token_hash'
const BYTES = 32

export const hasBootstrapToken = async (db: Db): Promise<boolean> => (await readFact(db, NAME)) !== null

/** Creates a new token and invalidates the old one. Returned once and never stored. */
export const rotateBootstrapToken = async (
  tx: Tx,
  { random, actor }: { random: Random; actor: Actor },
): Promise<string> => {
  const token = random.token(BYTES)
  await storeBootstrapToken(tx, token)
  await append(tx, actor, 'bootstrap_token_rotated')
  return token
}

/** Stores a token from the environment. */
export const storeBootstrapToken = (tx: Tx, token: string): Promise<void> => writeFact(tx, NAME, hash(token))

/** Uses up `token`. Of several parallel calls only one returns true. */
export const spendBootstrapToken = async (tx: Tx, token: string): Promise<boolean> =>
  (
    await tx
      .delete(facts)
      .where(and(eq(facts.name, NAME), eq(facts.value, hash(token))))
      .run()
  ).changes > 0

/** A cheap check beforehand; only `spendBootstrapToken` decides. */
export const isBootstrapToken = async (db: Db, token: string): Promise<boolean> =>
  (await readFact(db, NAME)) === hash(token)

/** Not needed once there is a password. */
export const dropBootstrapToken = (tx: Tx): Promise<void> => dropFact(tx, NAME)

/** 256 random bits need neither salt nor stretching, and comparing hashes leaks nothing through timing. */
const hash = (token: string): string => createHash('sha256').update(token).digest('hex')
