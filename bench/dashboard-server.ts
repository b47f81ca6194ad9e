/** A server on a large folder with a signed-in Admin. The server itself times every visit. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../tests/support/free-port.ts'
import { ADMIN, type BigFolder } from './dashboard-seed.ts'
import { type Child, childEnv, waitForAnswer } from './processes.ts'
import { sluiceEnv } from './targets.ts'

export interface Visit {
  /** From the request's arrival to the response headers, from the server's log. */
  ms: number
  /**
   * CPU time, from the request to the end of the response, of the threads that answer: the event loop and the database
   * readers. On a shared machine this is what remains comparable of `ms`.
   */
  coreMs: number
  body: string
}

const BUSY = 503

export interface DashboardServer extends Child {
  cookie: string
  /** Throws for any status but 200, and for a 503 of a read that timed out. */
  visit(path: string, headers?: Record<string, string>): Promise<Visit>
  /** With an empty JSON body. Throws when it fails. */
  send(method: string, path: string): Promise<void>
}

/** With a JSON log line for each request, which has the server's own time. */
export async function startDashboard(folder: BigFolder, env: Record<string, string> = {}): Promise<DashboardServer> {
  const port = freePort()
  const process = Bun.spawn([...folder.command, 'serve'], {
    env: childEnv({
      ...sluiceEnv(folder.dataDir, folder.upstreamUrl),
      CODEX_LB_LOG_FORMAT: 'json',
      CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
      HOST: '127.0.0.1',
      PORT: String(port),
      ...env,
    }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: Bun.file(join(folder.dataDir, '..', `stderr-${port}.log`)),
  })
  const url = `http://127.0.0.1:${port}`
  const log = followLog(process.stdout)
  await waitForAnswer(`${url}/health/live`, 60_000)
  const { pid } = process
  const cookie = await signIn(url)
  return {
    pid,
    url,
    cookie,
    errors: () => '',
    stop: async () => {
      process.kill('SIGTERM')
      const timer = setTimeout(() => process.kill('SIGKILL'), 5000)
      await process.exited
      clearTimeout(timer)
    },
    async send(method, path) {
      const headers = { cookie, accept: 'application/json', 'content-type': 'application/json', origin: url }
      const response = await fetch(url + path, { method, headers, ...(method !== 'DELETE' && { body: '{}' }) })
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
      await response.arrayBuffer()
    },
    async visit(path, headers = {}) {
      const before = coreMs(pid)
      const response = await fetch(url + path, { headers: { cookie, accept: 'text/html', ...headers } })
      const body = await response.text()
      const spentMs = coreMs(pid) - before
      if (response.status !== 200 && response.status !== BUSY)
        throw new Error(`${path} answered ${response.status}: ${body.slice(0, 300)}`)
      const ms = await log.getMs(response.headers.get('x-request-id') ?? '')
      return { ms, coreMs: spentMs, body }
    },
  }
}

async function signIn(url: string): Promise<string> {
  const response = await fetch(`${url}/api/dashboard-auth/password/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(ADMIN),
  })
  const cookie = response.headers.getSetCookie()[0]?.split(';')[0]
  if (response.status !== 200 || !cookie) throw new Error(`signing in: ${response.status} ${await response.text()}`)
  return cookie
}

/** The line is written before the response is sent, and may be read after it. */
function followLog(stream: ReadableStream<Uint8Array>) {
  const known = new Map<string, number>()
  const waiting = new Map<string, (ms: number) => void>()
  const read = async () => {
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true })
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) note(line)
    }
  }
  const note = (line: string) => {
    const entry = /"message":"request".*"ms":([\d.]+).*"request":"([^"]+)"/.exec(line)
    if (!entry?.[1] || !entry[2]) return
    const ms = Number(entry[1])
    const tell = waiting.get(entry[2])
    waiting.delete(entry[2])
    if (tell) tell(ms)
    else if (known.size < 10_000) known.set(entry[2], ms)
  }
  void read()
  return {
    getMs(request: string): Promise<number> {
      const ms = known.get(request)
      known.delete(request)
      return ms === undefined ? new Promise((resolve) => waiting.set(request, resolve)) : Promise.resolve(ms)
    },
  }
}

/** CPU time of the threads so far, from the kernel's scheduler. */
function coreMs(pid: number): number {
  let ns = 0
  for (const id of readdirSync(`/proc/${pid}/task`)) {
    const folder = `/proc/${pid}/task/${id}`
    try {
      if (id !== String(pid) && readFileSync(`${folder}/comm`, 'utf8') !== 'Worker\n') continue
      ns += Number(readFileSync(`${folder}/schedstat`, 'utf8').split(' ')[0])
    } catch {
      // a thread that ended between the two readings
    }
  }
  return ns / 1e6
}
