/** Real server and command-line processes, each with its own data directory. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePort } from './free-port.ts'
import { PATIENCE_MS } from './until.ts'

const ROOT = resolve(import.meta.dir, '../..')
const FROM_SOURCE = [process.execPath, 'src/main.ts']
const READY_TIMEOUT_MS = PATIENCE_MS
const STOP_TIMEOUT_MS = PATIENCE_MS

export interface SpawnOptions {
  /** What to run in front of the arguments; the source tree's `src/main.ts` by default. */
  command?: string[]
  /** Arguments of `serve`. */
  args?: string[]
  /** Kept after the server ends; without it a new folder is created and removed again. */
  dataDir?: string
  cwd?: string
  /** Added to a minimal environment: only PATH is inherited. */
  env?: Record<string, string>
  /** The standard input of a command; empty by default. */
  stdin?: string
  /** How long a command may take; a minute by default. */
  timeoutMs?: number
}

export interface RunningServer extends AsyncDisposable {
  /** Origin without a trailing slash. */
  url: string
  port: number
  /** Process id of the supervisor, which stays the same when the server is reloaded. */
  pid: number
  /** The server processes that it runs, oldest first. */
  workers(): number[]
  dataDir: string
  /** The environment for a `command` that uses the same folder and port. */
  env: Record<string, string>
  /** Everything written to stdout and stderr so far. */
  output(): string
  /** SIGTERM, then waits for the end; returns the exit code. Throws when it does not end in time. */
  stop(): Promise<number>
  /** SIGKILL of every process, like a power cut. */
  kill(): Promise<void>
}

export interface CommandResult {
  exitCode: number
  stdout: string
  stderr: string
}

/** Starts `serve` and waits until `/health/live` answers. Throws with the process's output when it ends before that. */
export async function spawnServer(options: SpawnOptions = {}): Promise<RunningServer> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'sluice-data-'))
  const port = freePort()
  const env = bareEnv({ CODEX_LB_DATA_DIR: dataDir, HOST: '127.0.0.1', PORT: String(port), ...options.env })
  const child = Bun.spawn([...(options.command ?? FROM_SOURCE), 'serve', ...(options.args ?? [])], {
    cwd: options.cwd ?? ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = collect(child.stdout, child.stderr)
  const server = getServer(child, { port, dataDir, env, output, isTemporary: options.dataDir === undefined })
  try {
    await untilLive(server.url, child)
  } catch (cause) {
    await server[Symbol.asyncDispose]()
    throw new Error(`The server did not start.\n${output()}`, { cause })
  }
  return server
}

/** Runs one command to its end, by default `sluice <args>` from source. Throws when it does not end in time, never for an exit code. */
export async function runCommand(args: string[], options: SpawnOptions = {}): Promise<CommandResult> {
  const child = Bun.spawn([...(options.command ?? FROM_SOURCE), ...args], {
    cwd: options.cwd ?? ROOT,
    env: bareEnv({ ...(options.dataDir ? { CODEX_LB_DATA_DIR: options.dataDir } : {}), ...options.env }),
    stdio: [options.stdin === undefined ? 'ignore' : new Blob([options.stdin]), 'pipe', 'pipe'],
    timeout: options.timeoutMs ?? READY_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  })
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (child.signalCode === 'SIGKILL') throw new Error(`${args.join(' ')} did not end.\n${stdout}${stderr}`)
  return { exitCode, stdout, stderr }
}

/** Their names, of a process on Linux. */
export const getThreads = (pid: number): string[] =>
  readdirSync(`/proc/${pid}/task`).map((id) => {
    try {
      return readFileSync(`/proc/${pid}/task/${id}/comm`, 'utf8').trim()
    } catch {
      return '' // it has ended
    }
  })

/** Ids of the child processes that still run, oldest first. Linux only; elsewhere none. */
export const childrenOf = (pid: number): number[] => {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return text.trim().split(' ').filter(Boolean).map(Number)
  } catch {
    return [] // it has ended
  }
}

const killNow = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has ended
  }
}

type Child = Bun.Subprocess<'ignore', 'pipe', 'pipe'>

interface Parts extends Pick<RunningServer, 'port' | 'dataDir' | 'env' | 'output'> {
  isTemporary: boolean
}

function getServer(child: Child, { isTemporary, ...parts }: Parts): RunningServer {
  const workers = () => childrenOf(child.pid)
  const kill = async () => {
    for (const pid of child.exitCode === null ? workers() : []) killNow(pid)
    child.kill('SIGKILL')
    await child.exited
  }
  const stop = async () => {
    child.kill('SIGTERM')
    const exitCode = await Promise.race([child.exited, Bun.sleep(STOP_TIMEOUT_MS)])
    if (exitCode !== undefined) return exitCode
    await kill()
    throw new Error(`The server did not stop within ${STOP_TIMEOUT_MS} ms of SIGTERM.\n${parts.output()}`)
  }
  return {
    ...parts,
    url: `http://127.0.0.1:${parts.port}`,
    pid: child.pid,
    workers,
    stop,
    kill,
    async [Symbol.asyncDispose]() {
      await kill()
      if (isTemporary && existsSync(parts.dataDir)) rmSync(parts.dataDir, { recursive: true })
    },
  }
}

async function untilLive(url: string, child: Child): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS
  while (performance.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`It ended with code ${child.exitCode}.`)
    const response = await fetch(`${url}/health/live`).catch(() => undefined) // rejected until it listens
    await response?.body?.cancel()
    if (response?.ok) return
    await Bun.sleep(10)
  }
  throw new Error(`Nothing answered at ${url} within ${READY_TIMEOUT_MS} ms.`)
}

/** A developer's proxies, tokens and `CODEX_LB_*` never reach a test. */
export function bareEnv(more: Record<string, string>): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: tmpdir(), TZ: 'UTC', ...more }
}

function collect(...streams: ReadableStream<Uint8Array>[]): () => string {
  let text = ''
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) text += decoder.decode(chunk, { stream: true })
  }
  for (const stream of streams) read(stream).catch((error) => (text += `\n(output lost: ${error})\n`))
  return () => text
}
