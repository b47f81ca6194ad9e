/** The server as a process, with a stand-in upstream, set up with the server's own commands. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { codexBody, parseEvents, type StreamEvent } from '../support/app.ts'
import { runInProcess } from '../support/cli.ts'
import { type RunningServer, type SpawnOptions, spawnServer } from '../support/spawn.ts'
import { until } from '../support/until.ts'
import { createUpstream } from '../support/upstream/app.ts'
import type { Answer } from '../support/upstream/script.ts'

const ROOT = resolve(import.meta.dir, '../..')

export interface Sim extends AsyncDisposable {
  url: string
  authFiles: string[]
  /** Decides every answer from now on. */
  answer(answer: Answer): Promise<void>
  /** Lets held answers end. */
  release(): Promise<void>
  /** `GET /_sim/<what>`. */
  look<T>(what: 'requests' | 'oddities' | 'stats'): Promise<T>
}

interface WorldOptions {
  accounts?: number
  /** `name=value`, as `settings set` takes them. */
  settings?: string[]
  /** `type:window:max`, as `keys create --limit` takes them. */
  limits?: string[]
  env?: Record<string, string>
  /** Arguments of `serve`. */
  args?: string[]
  /** So many requests at a time that the stand-in upstream needs a process of its own. */
  isBusy?: boolean
}

export interface World extends AsyncDisposable {
  sim: Sim
  /** An API key; key authentication is on. */
  key: string
  server: RunningServer
  /** What another start on the same folder takes. */
  spawn: SpawnOptions & { dataDir: string; env: Record<string, string> }
}

export const startWorld = async ({
  accounts = 2,
  settings = [],
  limits = [],
  env = {},
  args = [],
  isBusy = false,
}: WorldOptions = {}): Promise<World> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-world-'))
  const sim = await startSim(accounts, join(dataDir, 'auth'), isBusy)
  const spawn = {
    dataDir,
    args,
    env: { CODEX_LB_UPSTREAM_BASE_URL: `${sim.url}/backend-api`, CODEX_LB_AUTH_BASE_URL: sim.url, ...env },
  }
  const tearDown = async () => {
    await sim[Symbol.asyncDispose]()
    rmSync(dataDir, { recursive: true, force: true })
  }
  try {
    if (accounts > 0) await command(['accounts', 'import', ...sim.authFiles], dataDir)
    await command(['settings', 'set', 'apiKeyAuthEnabled=true', ...settings], dataDir)
    const made = ['keys', 'create', '--name', 'test', ...limits.flatMap((limit) => ['--limit', limit])]
    const key = (await command(made, dataDir)).trim()
    const server = await spawnServer(spawn)
    const dispose = async () => {
      await server[Symbol.asyncDispose]()
      await tearDown()
    }
    return { sim, key, server, spawn, [Symbol.asyncDispose]: dispose }
  } catch (error) {
    await tearDown()
    throw error
  }
}

interface AskedTurn {
  requestId?: string
  /** Text of the user's message. */
  text?: string
  signal?: AbortSignal
  headers?: Record<string, string>
  /** On a connection that carries nothing else. */
  isAlone?: boolean
}

/** One native turn over a real connection. */
export const sendTurn = (
  url: string,
  key: string,
  { requestId, text, signal, headers = {}, isAlone = false }: AskedTurn = {},
): Promise<Response> =>
  fetch(`${url}/backend-api/codex/responses`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'user-agent': 'codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm',
      ...(requestId && { 'x-request-id': requestId }),
      ...headers,
    },
    body: JSON.stringify(codexBody(text)),
    ...(signal && { signal }),
    keepalive: !isAlone,
  })

type Listed = readonly { status: string }[]

/** Polls the server's list of accounts: it looks for changes by other processes once a second. */
export const untilListed = (url: string, isExpected: (accounts: Listed) => boolean): Promise<void> =>
  until(async () => {
    const { accounts } = (await (await fetch(`${url}/api/accounts`)).json()) as { accounts: Listed } // as: its own format
    return isExpected(accounts)
  })

export const isTerminal = ({ type }: StreamEvent): boolean => /^response\.(completed|failed|incomplete)$/.test(type)

/** The events that arrived before the connection ended, however it ended. */
export const eventsUntilEnd = async (response: Response): Promise<StreamEvent[]> => {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true })
  } catch {
    // cut off: what came before counts
  }
  return parseEvents(text.slice(0, text.lastIndexOf('\n\n') + 2))
}

/** Runs a command that must succeed, and returns what it prints. */
export const command = async (args: string[], dataDir: string, env: Record<string, string> = {}): Promise<string> => {
  const { exitCode, stdout, stderr } = await runInProcess(args, { dataDir, env })
  if (exitCode !== 0) throw new Error(`sluice ${args.join(' ')} ended with ${exitCode}: ${stderr}`)
  return stdout
}

/** For much load it is a process of its own, because this process is the client. */
export const startSim = async (accounts: number, authDir: string, isOwnProcess: boolean): Promise<Sim> => {
  const { url, authFiles, stop } = await (isOwnProcess ? spawnSim : simHere)(accounts, authDir)
  return {
    url,
    authFiles,
    answer: async (answer) => {
      await fetch(`${url}/_sim/answer`, { method: 'POST', body: JSON.stringify(answer) })
    },
    release: async () => {
      await fetch(`${url}/_sim/release`, { method: 'POST' })
    },
    look: async <T>(what: string) => (await (await fetch(`${url}/_sim/${what}`)).json()) as T, // as: the caller knows its type
    [Symbol.asyncDispose]: stop,
  }
}

const KEPT_REQUESTS = 5000

const simHere = async (accounts: number, authDir: string) => {
  const upstream = createUpstream({ keepRequests: KEPT_REQUESTS })
  mkdirSync(authDir)
  const authFiles = Array.from({ length: accounts }, (_, n) => {
    const path = join(authDir, `auth-${n + 1}.json`)
    writeFileSync(path, upstream.addAccount().authJson(), { mode: 0o600 })
    return path
  })
  return { ...upstream.listen(), authFiles }
}

const spawnSim = async (accounts: number, authDir: string) => {
  const args = ['--accounts', String(accounts), '--auth-dir', authDir, '--keep', String(KEPT_REQUESTS)]
  const child = Bun.spawn([process.execPath, 'tests/support/upstream/serve.ts', ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH ?? '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { url, authFiles } = JSON.parse(await firstLine(child.stdout)) as { url: string; authFiles: string[] } // as: its own format
  const stop = async () => {
    child.kill('SIGKILL')
    await child.exited
  }
  return { url, authFiles, stop }
}

const firstLine = async (stream: ReadableStream<Uint8Array>): Promise<string> => {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let text = ''
  while (!text.includes('\n')) {
    const { done, value } = await reader.read()
    if (done) throw new Error('The stand-in upstream ended before it was ready.')
    text += decoder.decode(value, { stream: true })
  }
  return text
}
