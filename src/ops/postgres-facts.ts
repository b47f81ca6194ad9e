/** What the doctor reports about PostgreSQL. Uses its own connections and never throws. */
import { SQL } from 'bun'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { postgresSchemaState } from '../../db/postgres/migrate.ts'
import { requireOwnSession } from '../../db/postgres/own-session.ts'
import type { Clock } from '../lib/clock.ts'
import { type Check, type Found, passed, problem, unknown, warning } from './checks.ts'

export interface PostgresFacts {
  /** The version, such as `15.14`. */
  version: string
  bytes: number
  /** The connection limit, without connections reserved for administrators. */
  maxConnections: number
  /** Connections in use, by any program. */
  usedConnections: number
  /** Why the schema cannot be used, or null if it can. */
  schemaProblem: string | null
  /** Whether no server has used the database yet. */
  isNew: boolean
  /** Why notifications do not arrive, or null if they do. */
  poolerProblem: string | null
}

/** Reads the facts, or returns why they cannot be read. */
export const readPostgresFacts = async (url: string, clock: Clock): Promise<PostgresFacts | { unusable: string }> => {
  const sql = new SQL({ url, max: 2, connection: { application_name: 'sluice doctor' } })
  try {
    const [row] = await sql.unsafe(FACTS)
    const { problem: schemaProblem, isNew } = await postgresSchemaState(sql, MIGRATIONS)
    const poolerProblem = await requireOwnSession(sql, clock).then(() => null, getMessage)
    return {
      version: row.version,
      bytes: Number(row.bytes),
      maxConnections: Number(row.most),
      usedConnections: Number(row.used),
      schemaProblem,
      isNew,
      poolerProblem,
    }
  } catch (err) {
    return { unusable: `PostgreSQL at ${new URL(url).host} can’t be used: ${getMessage(err)}` }
  } finally {
    await sql.close()
  }
}

const FACTS = `SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
  pg_database_size(current_database()) AS bytes,
  current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS most,
  (SELECT sum(numbackends) FROM pg_stat_database) AS used`

const getMessage = (err: unknown): string => (err instanceof Error ? err.message : String(err))

/** The checks that replace that of the database file. */
export const postgresChecks = (facts: () => Promise<PostgresFacts | { unusable: string }>): Check[] => {
  const known = once(facts)
  const check = (id: string, title: string, run: (facts: PostgresFacts) => Found): Check => ({
    id,
    title,
    run: async () => {
      const found = await known()
      if (!('unusable' in found)) return run(found)
      return id === 'database' ? problem(found.unusable, UNUSABLE) : unknown('Can’t check it without a connection.')
    },
  })
  return [
    check('database', 'PostgreSQL', checkDatabase),
    check('database_connections', 'Database connections', checkConnections),
    check('database_sessions', 'Database sessions', checkSessions),
  ]
}

const UNUSABLE = 'Check SLUICE_DATABASE_URL, and that PostgreSQL runs and accepts connections from this machine.'

const once = <T>(run: () => Promise<T>): (() => Promise<T>) => {
  let running: Promise<T> | null = null
  return () => (running ??= run())
}

/**
 * The oldest supported version. Older ones get no updates and were not tested (www.postgresql.org/support/versioning).
 */
const OLDEST = 14

const checkDatabase = ({ version, bytes, schemaProblem, isNew }: PostgresFacts): Found => {
  if (schemaProblem !== null) return problem(schemaProblem, 'Update Sluice on this machine.')
  if (Number.parseInt(version, 10) < OLDEST)
    return problem(`PostgreSQL is version ${version}.`, `Update PostgreSQL to version ${OLDEST} or later.`)
  if (isNew) return unknown(`Version ${version}. Its tables will be created on first start.`)
  return passed(`Version ${version}; the database takes ${Math.ceil(bytes / 1024 / 1024)} MiB.`)
}

/** The most that one node opens (`db/postgres/open.ts`, `db/postgres/session.ts`). */
const NODE_CONNECTIONS = 10

const checkConnections = ({ maxConnections, usedConnections }: PostgresFacts): Found => {
  const says = `${usedConnections} of ${maxConnections} connections are in use; a node of Sluice uses up to ${NODE_CONNECTIONS}.`
  if (maxConnections - usedConnections >= NODE_CONNECTIONS) return passed(says)
  return warning(says, 'Raise max_connections of PostgreSQL, or another node may not start.')
}

const checkSessions = ({ poolerProblem }: PostgresFacts): Found =>
  poolerProblem === null
    ? passed('Notifications arrive, so nodes learn of each other’s changes.')
    : problem(poolerProblem, 'Connect to PostgreSQL directly, or set the pooler to session mode.')
