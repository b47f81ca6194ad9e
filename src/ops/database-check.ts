/** Checks a whole database for the doctor command. Blocks; never call it in a server. */
import type { Database } from 'bun:sqlite'
import { schemaProblem } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { readerDatabase } from '../../db/open.ts'
import { type Found, problem, unknown } from './checks.ts'
import { damaged, getDatabaseProblem } from './database-problem.ts'

/** Why a server cannot use the existing database at `path`; null: it can. Never throws. */
export const readThrough = (path: string): Found | null => {
  try {
    const { sqlite } = readerDatabase(path)
    try {
      return getDamage(sqlite, path) ?? strangeSchema(sqlite)
    } finally {
      sqlite.close()
    }
  } catch (err) {
    const trouble = getDatabaseProblem(err, path)
    return trouble ? problem(trouble.says, trouble.advice) : unknown(`The check failed: ${err}`)
  }
}

const getDamage = (sqlite: Database, path: string): Found | null => {
  const finding = sqlite.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').get()?.quick_check ?? 'ok'
  if (finding === 'ok') return null
  const { says, advice } = damaged(path, finding.replace(/^\*{3}.*\n/, '')) // the first line names no place
  return problem(says, advice)
}

const strangeSchema = (sqlite: Database): Found | null => {
  const wrong = schemaProblem(sqlite, MIGRATIONS)
  return wrong === null ? null : problem(wrong, 'Update Sluice, or restore an older backup: sluice restore FILE')
}
