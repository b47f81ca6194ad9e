/** The server as a process, set up with its own commands, with a stand-in upstream. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runInProcess } from '../../support/cli.ts'
import { type RunningServer, runCommand, spawnServer } from '../../support/spawn.ts'
import { until } from '../../support/until.ts'
import type { AccountOptions } from '../../support/upstream/accounts.ts'
import { createUpstream, type Upstream } from '../../support/upstream/app.ts'
import type { ReceivedRequest } from '../../support/upstream/ledger.ts'
import { isJson, type Json } from '../../support/upstream/script.ts'
import { openStablePort, type StablePort } from './door.ts'

export interface WorldOptions {
  /** Imported in this order; three of the plan `plus` by default. */
  accounts?: AccountOptions[]
  /** Given to `settings set`, on top of `apiKeyAuthEnabled=true`. */
  settings?: Record<string, string>
}

export interface World extends AsyncDisposable {
  /** Runs in this process, on a real port. */
  upstream: Upstream
  /** Origin of the server, without a trailing slash; another one after a restart. */
  readonly url: string
  /** Leads to the server, wherever it is. */
  door: StablePort
  /** The server's data folder, for reading its database. */
  readonly dataDir: string
  /** An unlimited API key of the server. */
  key: string
  /** Calls the dashboard API as the local administrator. Throws on any status but 2xx. */
  api<T>(method: string, path: string, body?: unknown): Promise<T>
  /** The model requests that reached the upstream, oldest first. */
  turns(): ReceivedRequest[]
  /** The emails of the accounts of those requests, in the same order. */
  accountsUsed(): string[]
  /** The request log, oldest first, once it has so many rows; throws when it has not after 10 s, or has more. */
  log(rows: number): Promise<LogRow[]>
  /** Ends the server with SIGTERM and starts it again on the same data, on another port. */
  restart(): Promise<void>
  /** `sluice reload`: another process serves the same port. */
  reload(): Promise<void>
  /** The output of the server so far; look here when a test fails. */
  output(): string
}

/** The columns of a request log row used here. */
export interface LogRow {
  responseId: string | null
  requestKind: string
  transport: string
  upstreamTransport: string | null
  accountName: string | null
  status: string
  httpStatus: number
  errorCode: string | null
  attemptCount: number
  movedAccount: boolean
}

/** The input items of a model request; none when it has no list of them. */
export function getItems(turn: ReceivedRequest | undefined): Json[] {
  return isJson(turn?.body) && Array.isArray(turn.body.input) ? turn.body.input : []
}

/** Starts everything; throws with the output of the command or server that failed. */
export async function startWorld({ accounts = [{}, {}, {}], settings = {} }: WorldOptions = {}): Promise<World> {
  const upstream = createUpstream()
  for (const account of accounts) upstream.addAccount(account)
  const service = upstream.listen()
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-data-'))
  const options = {
    dataDir,
    env: { CODEX_LB_UPSTREAM_BASE_URL: `${service.url}/backend-api`, CODEX_LB_AUTH_BASE_URL: service.url },
  }
  const tearDown = async () => {
    await service.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
  try {
    const key = await setUp(upstream, { apiKeyAuthEnabled: 'true', ...settings }, options)
    return await getWorld({ upstream, key, start: () => spawnServer(options), tearDown })
  } catch (error) {
    await tearDown()
    throw error
  }
}

const JSON_HEADERS = { 'content-type': 'application/json' }

type CommandOptions = { dataDir: string; env: Record<string, string> }

/** Imports the accounts, changes the settings and returns a new key, all through the command line. */
async function setUp(upstream: Upstream, settings: Record<string, string>, options: CommandOptions): Promise<string> {
  const files = upstream.accounts.map((account, index) => {
    const path = join(options.dataDir, `auth-${index + 1}.json`)
    writeFileSync(path, account.authJson(), { mode: 0o600 })
    return path
  })
  if (files.length > 0) await sluice(['accounts', 'import', ...files], options)
  await sluice(['settings', 'set', ...Object.entries(settings).map(([name, value]) => `${name}=${value}`)], options)
  const { key }: { key: string } = JSON.parse(await sluice(['keys', 'create', '--name', 'test', '--json'], options))
  return key
}

async function sluice(args: string[], options: CommandOptions): Promise<string> {
  const { exitCode, stdout, stderr } = await runInProcess(args, options)
  if (exitCode !== 0) throw new Error(`sluice ${args.join(' ')} ended with ${exitCode}.\n${stdout}${stderr}`)
  return stdout
}

interface Parts {
  upstream: Upstream
  key: string
  start: () => Promise<RunningServer>
  tearDown: () => Promise<void>
}

async function getWorld({ upstream, key, start, tearDown }: Parts): Promise<World> {
  let server = await start()
  let before = ''
  const output = () => before + server.output()
  const door = await openStablePort(() => server.port)
  const turns = () => upstream.requests.filter(({ path }) => path.endsWith('/codex/responses'))
  const getEmail = (id: string | null) =>
    upstream.accounts.find(({ chatgptAccountId }) => chatgptAccountId === id)?.email ?? 'no account'
  const api: World['api'] = (method, path, body) => callApi(`${server.url}${path}`, method, body)
  return {
    upstream,
    get url() {
      return server.url
    },
    get dataDir() {
      return server.dataDir
    },
    door,
    key,
    api,
    turns,
    accountsUsed: () => turns().map(({ account }) => getEmail(account)),
    async log(rows) {
      let page: LogRow[] = []
      const read = async () => {
        page = (await api<{ requests: LogRow[] }>('GET', '/api/request-logs?limit=200')).requests
        return page.length >= rows
      }
      await until(read, () => `${page.length} rows of ${rows}: ${JSON.stringify(page)}\n${output()}`)
      if (page.length > rows) throw new Error(`The log has ${page.length} rows, not ${rows}: ${JSON.stringify(page)}`)
      return page.toReversed().map(brief)
    },
    async restart() {
      await server.stop()
      before = output()
      server = await start()
    },
    async reload() {
      const { exitCode, stderr } = await runCommand(['reload'], { env: server.env, timeoutMs: 60_000 })
      if (exitCode !== 0) throw new Error(`sluice reload ended with ${exitCode}.\n${stderr}${output()}`)
    },
    output,
    async [Symbol.asyncDispose]() {
      await door.stop()
      await server[Symbol.asyncDispose]()
      await tearDown()
    },
  }
}

function brief(row: LogRow): LogRow {
  const { responseId, requestKind, transport, upstreamTransport, accountName } = row
  const { status, httpStatus, errorCode, attemptCount, movedAccount } = row
  const outcome = { status, httpStatus, errorCode, attemptCount, movedAccount }
  return { responseId, requestKind, transport, upstreamTransport, accountName, ...outcome }
}

async function callApi<T>(url: string, method: string, body: unknown): Promise<T> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: JSON_HEADERS }
  const response = await fetch(url, { method, ...sent })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text}`)
  return JSON.parse(text === '' ? 'null' : text)
}
