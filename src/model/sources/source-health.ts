/** Whether a model source works, from tests and from requests. Only changes are stored. */
import { eq } from 'drizzle-orm'
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
export const recordHealth = (db: Db, source: Pick<Source, 'id' | 'health'>, { code, at }: Outcome): void => {
  const health = code === null ? 'ok' : 'failing'
  if (health === source.health) return
  commit(db, (tx) => {
    tx.update(modelSources).set({ health, healthCode: code, healthAt: at }).where(eq(modelSources.id, source.id)).run()
    notice(tx, 'sources')
  })
}

/** Stores the result with its audit row. Nothing if the source was deleted or moved during the test. */
export const storeTest = (tx: Tx, source: Pick<Source, 'id' | 'baseUrl'>, result: TestResult, actor: Actor): void => {
  const row = tx.select().from(modelSources).where(eq(modelSources.id, source.id)).get()
  append(tx, actor, 'model_source_tested', { target: source.id, details: { ok: result.ok } })
  if (row?.baseUrl !== source.baseUrl) return
  const code = problemIn(result)?.code ?? null
  tx.update(modelSources)
    .set({ lastTest: result, health: result.ok ? 'ok' : 'failing', healthCode: code, healthAt: actor.at })
    .where(eq(modelSources.id, source.id))
    .run()
  notice(tx, 'sources')
}
