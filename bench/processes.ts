/** Starts, measures and stops the benchmark's child processes. Everything measured runs in a process of its own. */
import { readFileSync } from 'node:fs'

export type Child = {
  pid: number
  url: string
  /** Text the process wrote to stderr so far; empty when stderr was inherited. */
  errors: () => string
  stop: () => Promise<void>
}

/**
 * Environment of child processes: without proxy variables, so that all traffic stays on this machine, without settings
 * of an installed Sluice, and without the fetch cap, because Sluice raises its own and that is measured too.
 */
export function childEnv(extra: Record<string, string>): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name, value]) =>
      value !== undefined && !/proxy$|^CODEX_LB_|^BUN_CONFIG_MAX_HTTP_REQUESTS$|^HOST$|^PORT$/i.test(name),
  )
  // The filter above leaves only defined values.
  return { ...(Object.fromEntries(kept) as Record<string, string>), ...extra }
}

/** Starts one of our own servers, which print `{"port":n}` as their first line. */
export async function startHelper(script: string, env: Record<string, string>): Promise<Child> {
  const child = Bun.spawn(['bun', script], { env: childEnv(env), stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
  const { port } = JSON.parse(await firstLine(child.stdout)) as { port: number } // as: the line our own helpers print
  return { pid: child.pid, url: `http://127.0.0.1:${port}`, errors: () => '', stop: () => stop(child) }
}

/** Starts a server on a given port with its stderr in `logFile`. Does not wait for it. */
export function startServer(command: string[], port: number, env: Record<string, string>, logFile: string): Child {
  const log = Bun.file(logFile)
  const child = Bun.spawn(command, { env: childEnv(env), stdin: 'ignore', stdout: 'ignore', stderr: log })
  const errors = () => readFileSync(logFile, 'utf8')
  return {
    get pid() {
      return serverOf(child.pid)
    },
    url: `http://127.0.0.1:${port}`,
    errors,
    stop: () => stop(child),
  }
}

/** Sluice's supervisor is not measured, only the server process it runs. */
function serverOf(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
  const isServer = (child: string) => readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('\0--worker\0')
  return Number(children.findLast(isServer) ?? pid)
}

/** Runs a command and returns its stdout. Throws with its output when it fails. */
export async function runCommand(command: string[], env: Record<string, string>): Promise<string> {
  const child = Bun.spawn(command, { env: childEnv(env), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}\n${out}${err}`)
  return out
}

/** Resident memory of a process in bytes. */
export function rssBytes(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1] ?? Number.NaN) * 1024
}

/** CPU time a process has used so far, user and system, in ms (10 ms steps: the kernel's clock tick). */
export function cpuMs(pid: number): number {
  return usedMs(`/proc/${pid}/stat`)
}

/** The same for its first thread only, which runs the event loop. */
export function mainThreadMs(pid: number): number {
  return usedMs(`/proc/${pid}/task/${pid}/stat`)
}

function usedMs(statFile: string): number {
  const afterName = readFileSync(statFile, 'utf8').split(') ')[1] ?? ''
  const fields = afterName.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Waits until `url` responds with any status. Throws after `timeoutMs`. */
export async function waitForAnswer(url: string, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const answered = await fetch(url, { proxy: false } as RequestInit) // Bun option, unknown to the DOM type
      .then(async (response) => (await response.arrayBuffer()) !== null)
      .catch(() => false)
    if (answered) return
    if (performance.now() > deadline) throw new Error(`${url} did not answer within ${timeoutMs} ms`)
    await Bun.sleep(2)
  }
}

async function stop(child: Bun.Subprocess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGTERM')
  const isGone = await Promise.race([child.exited.then(() => true), Bun.sleep(3_000).then(() => false)])
  if (!isGone) child.kill('SIGKILL')
  await child.exited
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true })
    const end = text.indexOf('\n')
    if (end !== -1) return text.slice(0, end)
  }
  throw new Error(`the process ended before its first line: ${text}`)
}
