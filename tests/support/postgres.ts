/** A PostgreSQL server of its own for the tests of a file, in a temporary folder and on a free port. */

import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { SQL } from 'bun'
import { findProgram, POSTGRES } from '../../scripts/programs.ts'
import { freePort } from './free-port.ts'
import { childrenOf } from './spawn.ts'
import { until } from './until.ts'

export interface PostgresServer extends AsyncDisposable {
  /** `postgres://…`, of an empty database. */
  url: string
  sql: SQL
  /** SIGKILL of all its processes. */
  kill(): Promise<void>
  isRunning(): boolean
  /** SIGSTOP of all its processes: connections stay open and nothing answers. */
  freeze(): void
  /** After `kill` or `freeze`: it runs again, on the same port and data. */
  resume(): Promise<void>
}

const program = findProgram(POSTGRES)

/** Tests of PostgreSQL are skipped where it is missing, and fail with `CI=true`. */
export const MAY_SKIP = program === undefined && process.env.CI !== 'true'
if (MAY_SKIP) console.log('note: the tests of PostgreSQL are NOT RUN: install the package postgresql')

/** PostgreSQL does not run as root. Every system has this user. */
const NOBODY = 65534
const USER = 'sluice'

const INITIAL = ['--username', USER, '--auth', 'trust', '--encoding', 'UTF8', '--locale', 'C.UTF-8', '--no-sync']
/** Nothing is synced to the disk, because the data is deleted with the server. A commit outlives `kill`, though. */
const SETTINGS = ['fsync=off', 'full_page_writes=off', 'shared_buffers=32MB', 'max_connections=400']

export async function startPostgres(): Promise<PostgresServer> {
  if (program === undefined) throw new Error('PostgreSQL is not on this machine; install the package postgresql.')
  const dir = mkdtempSync(join(tmpdir(), 'sluice-postgres-'))
  if (isRoot()) chownSync(dir, NOBODY, NOBODY)
  const data = join(dir, 'data')
  const log = join(dir, 'log')
  const initdb = spawn([join(dirname(program), 'initdb'), '--pgdata', data, ...INITIAL], log)
  if ((await initdb.exited) !== 0) throw new Error(`initdb failed:\n${readFileSync(log, 'utf8')}`)
  const port = freePort()
  const settings = [...SETTINGS, 'listen_addresses=127.0.0.1', `port=${port}`, `unix_socket_directories=${dir}`]
  const start = () => spawn([program, '-D', data, ...settings.flatMap((setting) => ['-c', setting])], log)
  let server = start()
  const url = `postgres://${USER}@127.0.0.1:${port}/postgres`
  const sql = new SQL(url, { max: 1 })
  const signal = (name: NodeJS.Signals) => {
    for (const pid of [server.pid, ...childrenOf(server.pid)]) process.kill(pid, name)
  }
  const untilReady = async () => {
    await until(async () => server.exitCode !== null || (await isReady(sql)))
    if (server.exitCode !== null) throw new Error(`PostgreSQL ended:\n${readFileSync(log, 'utf8')}`)
  }
  const stop = async () => {
    await sql.close()
    server.kill('SIGINT') // fast: open sessions are ended
    await server.exited
    rmSync(dir, { recursive: true, force: true })
  }
  try {
    await untilReady()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url,
    sql,
    kill: async () => {
      signal('SIGKILL')
      await server.exited
    },
    isRunning: () => server.exitCode === null && server.signalCode === null,
    freeze: () => signal('SIGSTOP'),
    resume: async () => {
      if (server.exitCode === null && server.signalCode === null) return signal('SIGCONT')
      server = start()
      await untilReady()
    },
    [Symbol.asyncDispose]: stop,
  }
}

/** On Linux it ends with this process, however that ends. */
const spawn = (argv: string[], log: string) =>
  Bun.spawn([...(process.platform === 'linux' ? AS_CHILD : []), ...argv], {
    cwd: '/',
    stdio: ['ignore', 'ignore', Bun.file(log)],
  })

const isRoot = () => process.getuid?.() === 0

const AS_NOBODY = [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']
const AS_CHILD = ['setpriv', '--pdeathsig', 'INT', ...(isRoot() ? AS_NOBODY : []), '--']

const isReady = (sql: SQL): Promise<boolean> =>
  sql`SELECT 1`.then(
    () => true,
    () => false,
  )
