/** Connects to PostgreSQL. Loaded only if it is used. */
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { throwUncaught } from '../../db/open.ts'
import { breakingPostgresMigrations, migratePostgres } from '../../db/postgres/migrate.ts'
import { type OpenedPostgres, openPostgres, type PostgresOptions } from '../../db/postgres/open.ts'
import { NODES, NODES_RUNNING } from '../../db/postgres/session.ts'
import { LEDGER_ON_POSTGRES } from '../proxy/ledger/ledger-postgres.ts'
import { FolderError } from './private-folder.ts'

/** Migrates the database first. Throws `FolderError` if running nodes could not use it afterwards. */
export const connectPostgres = async (
  url: string,
  { clock, node }: Pick<PostgresOptions, 'clock' | 'node'>,
): Promise<OpenedPostgres> => {
  const options = { clock, node, procedures: LEDGER_ON_POSTGRES, onListenerError: throwUncaught }
  const opened = openPostgres(url, options)
  try {
    await requireGrowth(opened)
    await migratePostgres(opened.sql, MIGRATIONS, clock.now())
    return opened
  } catch (err) {
    await opened.close()
    throw err
  }
}

const requireGrowth = async ({ sql }: OpenedPostgres): Promise<void> => {
  const nodes = await sql.unsafe(NODES_RUNNING, [NODES])
  const [name] = nodes.length > 0 ? await breakingPostgresMigrations(sql, MIGRATIONS) : []
  if (name === undefined) return
  throw new FolderError(
    `This release changes the database in a way that running nodes do not support (${name}). Stop all nodes, then start this one.`,
  )
}
