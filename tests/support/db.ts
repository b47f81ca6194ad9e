/** A database of its own for each test: in memory, with the real schema. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../../db/migrate.ts'
import { type OpenedDatabase, openDatabase } from '../../db/open.ts'

const FOLDER = join(import.meta.dir, '../../db/migrations')

const migrations = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.sql'))
  .map((file) => ({ name: file.slice(0, -'.sql'.length), sql: readFileSync(join(FOLDER, file), 'utf8') }))

/** An error in a change listener fails the test instead of ending the process. */
export const testDb = (): OpenedDatabase => {
  const opened = openDatabase(':memory:', {
    onListenerError: (error) => {
      throw error
    },
  })
  migrate(opened.sqlite, migrations, 0)
  return opened
}
