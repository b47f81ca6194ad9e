/** The token that lets somebody on another machine set the first password: made once, stored hashed, spent once. */
import { createHash } from 'node:crypto'
import { and, eq } from 'drizzle-orm'
import type { Db, Tx } from '../../db/commit.ts'
import { facts } from '../../db/schema/system.ts'
import type { Random } from '../lib/random.ts'
import { type Actor, append } from './audit.ts'
import { dropFact, readFact, writeFact } from './facts.ts'

const NAME = 'bootstrap_token_hash'
const BYTES = 32

export const hasBootstrapToken = (db: Db): boolean => readFact(db, NAME) !== null

/** Makes a new one; the old one, if any, dies. The token stands here once, to be shown, and is not stored. */
export const rotateBootstrapToken = (tx: Tx, { random, actor }: { random: Random; actor: Actor }): string => {
  const token = random.token(BYTES)
  storeBootstrapToken(tx, token)
  append(tx, actor, 'bootstrap_token_rotated')
  return token
}

/** Takes a token somebody else has chosen: the environment's. */
export const storeBootstrapToken = (tx: Tx, token: string): void => writeFact(tx, NAME, hash(token))

/** Whether `token` was right. It is gone then: of several at once, one gets true. */
export const spendBootstrapToken = (tx: Tx, token: string): boolean =>
  tx
    .delete(facts)
    .where(and(eq(facts.name, NAME), eq(facts.value, hash(token))))
    .run().changes > 0

/** For a look before anything expensive; only `spendBootstrapToken` decides. */
export const isBootstrapToken = (db: Db, token: string): boolean => readFact(db, NAME) === hash(token)

/** Nobody needs it once there is a password. */
export const dropBootstrapToken = (tx: Tx): void => dropFact(tx, NAME)

/** 256 random bits need neither salt nor stretching, and a comparison of hashes tells nothing by its time. */
const hash = (token: string): string => createHash('sha256').update(token).digest('hex')
