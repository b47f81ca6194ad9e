/** Runs the hourly retention job with its pauses. */
import { retain } from '../../src/jobs/retention.ts'
import type { TestApp } from './app.ts'

export const runRetention = async ({ db, clock, bindings }: TestApp): Promise<void> => {
  const done = retain({ db, clock, settings: bindings.settings }, new AbortController().signal)
  await clock.advance('1s')
  await done
}
