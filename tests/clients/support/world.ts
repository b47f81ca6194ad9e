/** The whole product as its users meet it: the service as a process, set up by its own commands, over a stand-in upstream. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningServer, runCommand, spawnServer } from '../../support/spawn.ts'
import type { AccountOptions } from '../../support/upstream/accounts.ts'
import { createUpstream, type Upstream } from '../../support/upstream/app.ts'
import type { ReceivedRequest } from '../../support/upstream/ledger.ts'
import { isJson, type Json } from '../../support/upstream/script.ts'

export interface WorldOptions {
  /** Imported in this order; three of the plan `plus` unless told. */
  accounts?: AccountOptions[]
  /** Given to `settings set`, on top of `apiKeyAuthEnabled=true`. */
  settings?: Record<string, string>
}

export interface World extends AsyncDisposable {
  /** Runs in this process, on a real port. */
  upstream: Upstream
  /** Origin of the service, without a trailing slash. */
  url: string
  /** An API key of the service without any limit. */
  key: string
  /** Calls the dashboard API as the local administrator. Throws on any status but 2xx. */
  api<T>(method: string, path: string, body?: unknown): Promise<T>
  /** The model requests that reached the upstream, oldest first. */
  turns(): ReceivedRequest[]
  /** The e-mail addresses of the accounts those requests were for, in the same order. */
  accountsUsed(): string[]
  /** What the service printed so far; look here when a test fails. */
  output(): string
}

/** The input items of a model request; none when it has no list of them. */
export function itemsOf(turn: ReceivedRequest | undefined): Json[] {
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
    return worldOf(upstream, await spawnServer(options), key, tearDown)
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
  await sluice(['accounts', 'import', ...files], options)
  await sluice(['settings', 'set', ...Object.entries(settings).map(([name, value]) => `${name}=${value}`)], options)
  const { key }: { key: string } = JSON.parse(await sluice(['keys', 'create', '--name', 'test', '--json'], options))
  return key
}

async function sluice(args: string[], options: CommandOptions): Promise<string> {
  const { exitCode, stdout, stderr } = await runCommand(args, options)
  if (exitCode !== 0) throw new Error(`sluice ${args.join(' ')} ended with ${exitCode}.\n${stdout}${stderr}`)
  return stdout
}

function worldOf(upstream: Upstream, server: RunningServer, key: string, tearDown: () => Promise<void>): World {
  const turns = () => upstream.requests.filter(({ path }) => path.endsWith('/codex/responses'))
  const emailOf = (id: string | null) =>
    upstream.accounts.find(({ chatgptAccountId }) => chatgptAccountId === id)?.email ?? 'nobody'
  return {
    upstream,
    url: server.url,
    key,
    async api(method, path, body) {
      const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: JSON_HEADERS }
      const response = await fetch(`${server.url}${path}`, { method, ...sent })
      const text = await response.text()
      if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
      return text === '' ? undefined : JSON.parse(text)
    },
    turns,
    accountsUsed: () => turns().map(({ account }) => emailOf(account)),
    output: server.output,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await tearDown()
    },
  }
}
