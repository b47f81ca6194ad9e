/** The real OpenCode in its own home folder, without internet: as a command, and as the server of its UI. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { runCommand } from '../../support/spawn.ts'
import { until } from '../../support/until.ts'
import { startTrap } from './trap.ts'

/** The one build that is pinned; of the two for this kind of machine the one that older processors can run. */
const PROGRAM = resolve(import.meta.dir, '../node_modules/opencode-linux-x64-baseline/bin/opencode')
const DEADLINE_MS = 110_000

/** Output of `opencode run` in the terminal. */
export interface OpenCodeRun {
  exitCode: number
  /** Every piece of the answer, one per line. */
  text: string
  /** The visible reasoning, with `--thinking`. */
  reasoning: string
  tools: { name: string; output: string }[]
  complaints: string[]
}

/** One message of a conversation in its screens, once it is answered. */
export interface OpenCodeAnswer {
  text: string
  complaint: string | null
}

/** The text of its UI below a conversation that continues automatically, with the time. */
export interface OpenCodeWait {
  message: string
  /** Milliseconds since epoch. */
  next: number
}

export interface OpenCodeSession {
  /** Rejects after 110 s. */
  say(prompt: string): Promise<OpenCodeAnswer>
  /** Says it, and resolves once it waits instead of answering; then stops it, as the escape key does. */
  sayUntilItWaits(prompt: string): Promise<OpenCodeWait>
  /** The title of the conversation in the list. */
  title(): Promise<string>
}

export interface OpenCodeServer extends AsyncDisposable {
  /** A new conversation in a folder of the home. */
  startSession(folder: string): Promise<OpenCodeSession>
}

export interface OpenCode extends Disposable {
  /** Creates a folder with this `opencode.json` and other files; returns its path. */
  folder(config: string, files?: Record<string, string>): string
  /** `opencode run` in a folder; throws after 110 s. */
  run(folder: string, ...args: string[]): Promise<OpenCodeRun>
  serve(): Promise<OpenCodeServer>
  /** Attempts to leave this machine: `CONNECT host:443`. */
  readonly sideCalls: readonly string[]
}

/** Whether there is a build of it for this machine. */
export const hasOpenCode = (): boolean => existsSync(PROGRAM)

/** In an empty home folder, or in one where a user signed in to ChatGPT before. */
export function installOpenCode({ isSignedIn = false } = {}): OpenCode {
  const home = mkdtempSync(join(tmpdir(), 'opencode-home-'))
  const trap = startTrap()
  if (isSignedIn) signIn(home)
  const env = environment(home, trap.url)
  let folders = 0
  return {
    folder(config, files = {}) {
      const folder = join(home, `work-${++folders}`)
      mkdirSync(folder)
      for (const [name, text] of Object.entries({ 'opencode.json': config, ...files }))
        writeFileSync(join(folder, name), text)
      return folder
    },
    run: (folder, ...args) => run(folder, env, args),
    serve: () => serve(home, env),
    sideCalls: trap.calls,
    [Symbol.dispose]() {
      trap.stop()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** What `opencode auth login` leaves behind. */
function signIn(home: string): void {
  const folder = join(home, '.local/share/opencode')
  mkdirSync(folder, { recursive: true })
  const login = { type: 'oauth', refresh: 'r', access: 'a', expires: Date.now() + 3_600_000, accountId: 'somebody' }
  writeFileSync(join(folder, 'auth.json'), JSON.stringify({ openai: login }))
}

/** Inherits only PATH from the environment, and every connection to another machine leads into the trap. */
function environment(home: string, trapUrl: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: home,
    TZ: 'UTC',
    HTTP_PROXY: trapUrl,
    HTTPS_PROXY: trapUrl,
    NO_PROXY: '127.0.0.1,localhost',
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1', // it then knows its built-in models
  }
}

/** One line of `opencode run --format json`; the fields depend on the type. */
interface RunEvent {
  type: string
  part?: { text?: string; tool?: string; state?: { output?: string } }
  error?: { data: { message: string } }
}

async function run(folder: string, env: Record<string, string>, args: string[]): Promise<OpenCodeRun> {
  const told = ['run', '--format', 'json', ...args]
  const options = { command: [PROGRAM], cwd: folder, env, timeoutMs: DEADLINE_MS }
  const { exitCode, stdout } = await runCommand(told, options)
  const events = stdout.split('\n').flatMap((line): RunEvent[] => (line.startsWith('{') ? [JSON.parse(line)] : []))
  const said = (kind: string) =>
    events.flatMap(({ type, part }) => (type === kind ? [part?.text ?? ''] : [])).join('\n')
  return {
    exitCode,
    text: said('text'),
    reasoning: said('reasoning'),
    tools: events.flatMap(({ type, part }) =>
      type === 'tool_use' ? [{ name: part?.tool ?? '', output: part?.state?.output ?? '' }] : [],
    ),
    complaints: events.flatMap(({ error }) => (error ? [error.data.message] : [])),
  }
}

async function serve(home: string, env: Record<string, string>): Promise<OpenCodeServer> {
  const child = Bun.spawn([PROGRAM, 'serve', '--port', '0'], { cwd: home, env, stdio: ['ignore', 'pipe', 'ignore'] })
  const ask = asker(await addressIn(child.stdout))
  return {
    async startSession(folder) {
      const { id } = await ask<{ id: string }>('POST', '/session', folder, {})
      return getSession(ask, folder, id)
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

/** Its address, from its first output; later output is read and dropped, so that it never blocks. */
function addressIn(stdout: ReadableStream<Uint8Array>): Promise<string> {
  const address = Promise.withResolvers<string>()
  const read = async () => {
    const decoder = new TextDecoder()
    let output = ''
    for await (const chunk of stdout) {
      output += decoder.decode(chunk, { stream: true })
      const [, origin] = /listening on (http:\/\/\S+)/.exec(output) ?? []
      if (origin) address.resolve(origin)
    }
    address.reject(new Error(`opencode serve ended.\n${output}`))
  }
  void read()
  return address.promise
}

type Ask = <T>(method: 'GET' | 'POST', path: string, folder: string, body?: unknown) => Promise<T>

/** Its API; every request names the folder whose configuration applies. */
function asker(origin: string): Ask {
  return async (method, path, folder, body) => {
    const response = await fetch(`${origin}${path}?directory=${encodeURIComponent(folder)}`, {
      method,
      headers: { 'content-type': 'application/json' },
      signal: AbortSignal.timeout(DEADLINE_MS),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} of opencode answered ${response.status}: ${text}`)
    return JSON.parse(text === '' ? 'null' : text)
  }
}

interface Message {
  info: { error?: { data: { message: string } } }
  parts: { type: string; text?: string }[]
}

function getSession(ask: Ask, folder: string, id: string): OpenCodeSession {
  const sent = (prompt: string) => ({ parts: [{ type: 'text', text: prompt }] })
  const waiting = async () => {
    const all = await ask<Record<string, { type: string } & OpenCodeWait>>('GET', '/session/status', folder)
    return all[id]?.type === 'retry' ? all[id] : null
  }
  return {
    async say(prompt) {
      const { info, parts } = await ask<Message>('POST', `/session/${id}/message`, folder, sent(prompt))
      const texts = parts.flatMap(({ type, text = '' }) => (type === 'text' ? [text] : []))
      return { text: texts.join('\n'), complaint: info.error?.data.message ?? null }
    },
    async sayUntilItWaits(prompt) {
      await ask('POST', `/session/${id}/prompt_async`, folder, sent(prompt))
      let wait: OpenCodeWait | null = null
      const isWaiting = async () => {
        wait = await waiting()
        return wait !== null
      }
      await until(isWaiting, () => 'It does not wait.')
      await ask('POST', `/session/${id}/abort`, folder)
      return wait ?? { message: '', next: 0 }
    },
    title: async () => (await ask<{ title: string }>('GET', `/session/${id}`, folder)).title,
  }
}
