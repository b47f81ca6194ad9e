/** A database of PostgreSQL for each test, on one server for each test process. */
import { SQL } from 'bun'
import { createDb, type Db, getWriter } from '../../db/commit.ts'
import { getDdl } from '../../db/postgres/ddl.ts'
import { type OpenedPostgres, openPostgres } from '../../db/postgres/open.ts'
import * as schema from '../../db/schema/all.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { LEDGER_ON_POSTGRES } from '../../src/proxy/ledger/ledger-postgres.ts'
import { type PostgresServer, startPostgres } from './postgres.ts'

const TEMPLATE = `template_${process.pid}`
/** More would use up the connections of the server; a test opens one or two. */
const MOST_OPEN = 12

let server: Promise<Pick<PostgresServer, 'url' | 'sql'>> | null = null
let count = 0
const open: OpenedPostgres[] = []

async function start(): Promise<Pick<PostgresServer, 'url' | 'sql'>> {
  const started = await getServer()
  await started.sql.unsafe(`CREATE DATABASE ${TEMPLATE}`)
  const { sql, close } = openPostgres(urlOf(started, TEMPLATE), {
    clock: systemClock,
    node: 'template',
    onListenerError: () => {},
  })
  for (const statement of getDdl(schema)) await sql.unsafe(statement)
  await close()
  return started
}

/** A server that runs already may be given, to run many files against it. */
async function getServer(): Promise<Pick<PostgresServer, 'url' | 'sql'>> {
  const url = process.env.SLUICE_TEST_POSTGRES
  return url ? { url, sql: new SQL(url, { max: 1 }) } : startPostgres()
}

const urlOf = ({ url }: Pick<PostgresServer, 'url'>, name: string): string => url.replace(/\/postgres$/, `/${name}`)

/** Created with the first query. */
export function createPostgresDb(onListenerError: (error: unknown) => void): Db {
  const name = `test_${process.pid}_${++count}`
  let opened: Promise<OpenedPostgres> | null = null
  const get = () => (opened ??= create(name, onListenerError))
  return createDb({
    writer: { call: async (procedure, args) => getWriter((await get()).db).call(procedure, args) },
    reader: { call: async (procedure, args) => (await get()).reader.call(procedure, args) },
    snapshot: async (fn) => (await get()).snapshot(fn),
    engine: 'postgres',
    onListenerError,
  })
}

async function create(name: string, onListenerError: (error: unknown) => void): Promise<OpenedPostgres> {
  server ??= start()
  const started = await server
  await started.sql.unsafe(`CREATE DATABASE ${name} TEMPLATE ${TEMPLATE}`)
  const opened = openPostgres(urlOf(started, name), {
    ...{ clock: systemClock, node: name, procedures: LEDGER_ON_POSTGRES, onListenerError },
  })
  open.push(opened)
  if (open.length > MOST_OPEN) void open.shift()?.close()
  return opened
}
