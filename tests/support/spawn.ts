/** Real server and command-line processes, each with its own data directory. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePort } from './free-port.ts'
import { PATIENCE_MS, until } from './until.ts'

const ROOT = resolve(import.meta.dir, '../..')
/** The checkout, as `npm start` runs it. */
export const FROM_SOURCE: readonly string[] = [process.execPath, 'src/main.ts']
/**
 * What tests start. `npm test` builds one executable per run, because the checkout compiles all sources at each start: a
 * server then takes 1.3 s of processor time instead of 0.5 s, a command 0.35 s instead of 0.1 s. A file run alone uses
 * the checkout.
 */
const { SLUICE_TEST_EXECUTABLE } = process.env
export const PROGRAM: readonly string[] = SLUICE_TEST_EXECUTABLE ? [SLUICE_TEST_EXECUTABLE] : FROM_SOURCE
const READY_TIMEOUT_MS = PATIENCE_MS
const STOP_TIMEOUT_MS = PATIENCE_MS
/** The last output can arrive after the exit. */
const LAST_OUTPUT_MS = 2000

export interface SpawnOptions {
  /** What to run in front of the arguments; the executable of this run by default. */
  command?: readonly string[]
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
  const child = Bun.spawn([...(options.command ?? PROGRAM), 'serve', ...(options.args ?? [])], {
    cwd: options.cwd ?? ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { output, ended } = collect(child.stdout, child.stderr)
  const server = getServer(child, { port, dataDir, env, output, ended, isTemporary: options.dataDir === undefined })
  try {
    await untilLive(server.url, child)
  } catch (cause) {
    await server[Symbol.asyncDispose]()
    throw new Error(`The server did not start.\n${output()}`, { cause })
  }
  return server
}

/** Until it has printed its greeting, or with JSON its line in the log: health checks are answered before. */
export const untilGreeted = ({ output }: Pick<RunningServer, 'output'>): Promise<void> =>
  until(() => /^\d+ accounts?\b.* keys?\b|"message":"listening"/m.test(output()), output)

/** Runs one command to its end, `sluice <args>` by default. Throws when it does not end in time, never for an exit code. */
export async function runCommand(args: string[], options: SpawnOptions = {}): Promise<CommandResult> {
  const child = Bun.spawn([...(options.command ?? PROGRAM), ...args], {
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

/** Whether all threads have, also if its parent has not taken note yet. Linux only. */
const hasEnded = (pid: number): boolean => {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ') && readdirSync(`/proc/${pid}/task`).length <= 1
  } catch {
    return true
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
  /** Resolves when nothing more can be written. */
  ended: Promise<unknown>
}

function getServer(child: Child, { isTemporary, ended, ...parts }: Parts): RunningServer {
  const workers = () => childrenOf(child.pid)
  const kill = async () => {
    const pids = child.exitCode === null ? workers() : []
    child.kill('SIGKILL') // first, so that it starts no other
    for (const pid of pids) killNow(pid)
    await child.exited
    await until(() => pids.every(hasEnded)) // until then it has the locks of the folder
  }
  const stop = async () => {
    child.kill('SIGTERM')
    const exitCode = await Promise.race([child.exited, Bun.sleep(STOP_TIMEOUT_MS)])
    if (exitCode !== undefined) {
      await Promise.race([ended, Bun.sleep(LAST_OUTPUT_MS)]) // a server that still drains keeps them open
      return exitCode
    }
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

function collect(...streams: ReadableStream<Uint8Array>[]): { output: () => string; ended: Promise<unknown> } {
  let text = ''
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) text += decoder.decode(chunk, { stream: true })
  }
  const all = streams.map((stream) => read(stream).catch((error) => (text += `\n(output lost: ${error})\n`)))
  return { output: () => text, ended: Promise.all(all) }
}
