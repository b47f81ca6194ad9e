/** Several servers on one PostgreSQL, each with a data folder of its own and a copy of the encryption key. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { type RunningServer, type SpawnOptions, spawnServer, untilGreeted } from '../support/spawn.ts'
import { until } from '../support/until.ts'
import { command, type Sim, sendTurn, startSim } from './world.ts'

export interface NodesOptions {
  nodes?: number
  accounts?: number
  /** `name=value`, as `settings set` takes them. */
  settings?: string[]
  /** `type:window:max`, as `keys create --limit` takes them. */
  limits?: string[]
  env?: Record<string, string>
  /**
   * Each node starts after the one before: the first is node 1 and runs the jobs. Otherwise they start at the same time,
   * and any of them can be.
   */
  isInOrder?: boolean
}

export interface Nodes extends AsyncDisposable {
  sim: Sim
  /** An API key; key authentication is on. */
  key: string
  servers: RunningServer[]
  /** What another start of the same node takes. */
  spawn: (SpawnOptions & { dataDir: string; env: Record<string, string> })[]
  /** Reads the database; survives a restart of PostgreSQL. */
  sql: SQL
  postgres: PostgresServer
  /** Starts a node again that has ended. */
  start(index: number): Promise<RunningServer>
}

let running: Promise<PostgresServer> | null = null
let databases = 0

/** One PostgreSQL for all tests of the file; each test has a database of its own. */
const getPostgres = (): Promise<PostgresServer> => (running ??= startPostgres())

export const stopPostgres = async (): Promise<void> => {
  await (await running)?.[Symbol.asyncDispose]()
  running = null
}

export const startNodes = async ({
  nodes = 3,
  accounts = 2,
  settings = [],
  limits = [],
  env = {},
  isInOrder = false,
}: NodesOptions = {}): Promise<Nodes> => {
  const postgres = await getPostgres()
  const name = `nodes_${++databases}`
  await postgres.sql.unsafe(`CREATE DATABASE ${name}`)
  const url = postgres.url.replace(/\/postgres$/, `/${name}`)
  const dir = mkdtempSync(join(tmpdir(), 'sluice-nodes-'))
  const sim = await startSim(accounts, join(dir, 'auth'), true)
  const sql = new SQL(url, { max: 1 })
  const servers: RunningServer[] = []
  const spawn = Array.from({ length: nodes }, (_, index) => ({
    dataDir: join(dir, `node-${index + 1}`),
    env: {
      SLUICE_DATABASE_URL: url,
      CODEX_LB_UPSTREAM_BASE_URL: `${sim.url}/backend-api`,
      CODEX_LB_AUTH_BASE_URL: sim.url,
      ...env,
    },
  }))
  const dispose = async () => {
    await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()))
    await sim[Symbol.asyncDispose]()
    await sql.close()
    rmSync(dir, { recursive: true, force: true })
  }
  const start = async (index: number) => {
    const server = await spawnServer(spawn[index])
    servers[index] = server
    await untilGreeted(server) // before, a signal ends it without draining
    return server
  }
  try {
    const [first, ...others] = spawn.map(({ dataDir }) => dataDir)
    const run = (args: string[]) => command(args, first!, { SLUICE_DATABASE_URL: url })
    if (accounts > 0) await run(['accounts', 'import', ...sim.authFiles])
    await run(['settings', 'set', 'apiKeyAuthEnabled=true', ...settings])
    const made = ['keys', 'create', '--name', 'test', ...limits.flatMap((limit) => ['--limit', limit])]
    const key = (await run(made)).trim()
    for (const other of others) {
      mkdirSync(other, { mode: 0o700 })
      copyFileSync(join(first!, 'encryption.key'), join(other, 'encryption.key'))
    }
    if (isInOrder) for (const index of spawn.keys()) await start(index)
    else await Promise.all(spawn.map((_, index) => start(index)))
    return { sim, key, servers, spawn, sql, postgres, start, [Symbol.asyncDispose]: dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

export interface Outcome {
  admitted: number
  rejected: number
  other: Failure[]
}

/** A request that was neither served nor rejected by the limit. */
export interface Failure {
  server: RunningServer
  requestId: string
  /** Null: the connection failed. */
  status: number | null
  text: string
}

/** A request that hangs fails its test together with the output of the servers. */
const HUNG_MS = 60_000

let requestCount = 0

/** `count` requests, at most `parallel` of them at a time, over all nodes in turn. */
export const askMany = async (
  { servers, key }: Pick<Nodes, 'servers' | 'key'>,
  count: number,
  parallel = 200,
): Promise<Outcome> => {
  const outcome: Outcome = { admitted: 0, rejected: 0, other: [] }
  let next = 0
  const worker = async () => {
    for (let n = next++; n < count; n = next++) {
      const server = servers[n % servers.length]!
      const requestId = `ask-${++requestCount}`
      let status: number | null = null
      const fail = (text: string) => outcome.other.push({ server, requestId, status, text })
      try {
        const response = await sendTurn(server.url, key, { requestId, signal: AbortSignal.timeout(HUNG_MS) })
        const text = await response.text()
        status = response.status
        if (status === 200) outcome.admitted++
        else if (status === 429 && text.includes('limit exceeded')) outcome.rejected++
        else fail(text.slice(0, 200))
      } catch (error) {
        fail(String(error))
      }
    }
  }
  await Promise.all(Array.from({ length: parallel }, worker))
  return outcome
}

export const streamsAt = ({ sim }: Pick<Nodes, 'sim'>) => sim.look<{ streams: number; peakStreams: number }>('stats')

export const reached = (world: Pick<Nodes, 'sim'>, streams: number): Promise<void> =>
  until(async () => (await streamsAt(world)).streams >= streams)

/** The process that serves. */
export const workerOf = (server: RunningServer): number => server.workers().at(-1)!

/** The output of all nodes, to explain a failure. */
export const outputOf = ({ servers }: Pick<Nodes, 'servers'>): string =>
  servers.map((server, index) => `--- node ${index + 1}\n${server.output().slice(-4000)}`).join('\n')
