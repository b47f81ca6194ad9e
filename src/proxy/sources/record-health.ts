/** Notes in the dashboard whether a source works, from the requests it served. */
import type { Db } from '../../../db/commit.ts'
import type { AppError, Code } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { recordHealth } from '../../model/sources/source-health.ts'
import type { Sources } from '../../model/sources/sources.ts'

/** Errors of the source rather than of one request. */
const FAILING: ReadonlySet<Code> = new Set([
  'model_source_unreachable',
  'model_source_credentials_error',
  'invalid_upstream_response',
  'upstream_timeout',
])

export interface HealthDeps {
  db: Db
  sources: Pick<Sources, 'byId'>
  clock: Clock
  log: Log
}

/** `error` null: it answered. Never throws: the request is over, and the next one notes it again. */
export const recordSourceHealth = (
  { db, sources, clock, log }: HealthDeps,
  sourceId: string,
  error: AppError | null,
): void => {
  const source = sources.byId(sourceId)
  const isFault =
    error !== null && (FAILING.has(error.code) || (error.code === 'model_source_error' && error.status >= 500))
  if (!source || (error !== null && !isFault)) return
  recordHealth(db, source, { code: error?.code ?? null, at: clock.now() }).catch((err: unknown) => {
    log.error('the health of a model source cannot be written', { source: sourceId, err })
  })
}
