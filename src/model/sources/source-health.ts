/** Whether a model source works, from tests and from requests. Only changes are stored. */
import { and, eq, ne } from 'drizzle-orm'
import { commit, type Db, notice, type Tx } from '../../../db/commit.ts'
import { modelSources } from '../../../db/schema/sources.ts'
import { type Actor, append } from '../audit/audit.ts'
import type { Source } from './sources.ts'
import { problemIn, type TestResult } from './test-result.ts'

interface Outcome {
  /** The error code; null: it answered. */
  code: string | null
  /** ms since epoch */
  at: number
}

/** For every request that a source ended; reads and writes nothing while the health stays the same. */
export const recordHealth = async (
  db: Db,
  source: Pick<Source, 'id' | 'health'>,
  { code, at }: Outcome,
): Promise<void> => {
  const health = code === null ? 'ok' : 'failing'
  if (health === source.health) return
  await commit(db, async (tx) => {
    const { changes } = await tx
      .update(modelSources)
      .set({ health, healthCode: code, healthAt: at })
      .where(and(eq(modelSources.id, source.id), ne(modelSources.health, health)))
      .run()
    if (changes > 0) notice(tx, 'sources') // only the first of many requests that end together
  })
}

/** Stores the result with its audit row. Nothing if the source was deleted or moved during the test. */
export const storeTest = async (
  tx: Tx,
  source: Pick<Source, 'id' | 'baseUrl'>,
  result: TestResult,
  actor: Actor,
): Promise<void> => {
  const row = await tx.select().from(modelSources).where(eq(modelSources.id, source.id)).get()
  await append(tx, actor, 'model_source_tested', { target: source.id, details: { ok: result.ok } })
  if (row?.baseUrl !== source.baseUrl) return
  const code = problemIn(result)?.code ?? null
  await tx
    .update(modelSources)
    .set({ lastTest: result, health: result.ok ? 'ok' : 'failing', healthCode: code, healthAt: actor.at })
    .where(eq(modelSources.id, source.id))
    .run()
  notice(tx, 'sources')
}
