/** The dependencies of jobs, from the bindings of a test. */
import type { JobDeps } from '../../src/jobs/context.ts'
import type { TestApp } from '../support/app.ts'

export const jobDeps = ({ bindings }: Pick<TestApp, 'bindings'>): JobDeps => {
  const { db, pool, catalog, clock, log, proxyDeps } = bindings
  return {
    db,
    pool,
    catalog,
    clock,
    log,
    upstream: proxyDeps.upstream,
    credentials: proxyDeps.credentials,
    polls: new Map(),
  }
}
