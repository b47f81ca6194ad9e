/** The real Codex CLI in its own home folder: configured for one provider, without internet, one run at a time. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type AppServer, driveAppServer } from './app-server.ts'
import { startTrap } from './trap.ts'

const PACKAGES = resolve(import.meta.dir, '../node_modules/@openai')
const DEADLINE_MS = 110_000
const KEY_VARIABLE = 'LB_API_KEY'

export interface CodexOptions {
  /** What `base_url` of the provider is, without a trailing slash. */
  baseUrl: string
  /** An API key, or the text of the `auth.json` of a ChatGPT login. */
  auth: { key: string } | { chatGptLogin: string }
  /** Requests the catalog of `baseUrl` although the login is a key. */
  listsModels?: boolean
  model?: string
  /** Where Codex reads the usage of its ChatGPT login; the trap by default. */
  chatgptBaseUrl?: string
  /** Turns use a WebSocket, if the provider accepts one. */
  sockets?: boolean
  /** The provider compacts. */
  compactsRemotely?: boolean
  /** The client searches the web itself, with its own request to the provider. */
  searchesWeb?: boolean
  /** The address of an MCP server, which gets the same key. */
  mcpServer?: string
  /** Sent with every request of the provider. */
  headers?: Record<string, string>
  /** A configuration to paste, instead of a provider created from the options above. */
  pasted?: { config: string; variables?: Record<string, string> }
}

/** One line of `codex exec --json`; the fields depend on the type. */
interface CodexEvent {
  type: string
  thread_id?: string
  message?: string
  error?: { message: string }
  item?: { type: string; text?: string; command?: string; aggregated_output?: string; exit_code?: number | null }
  usage?: { input_tokens: number; output_tokens: number }
}

interface CodexRun {
  exitCode: number
  events: CodexEvent[]
  /** Every agent message, one per line. */
  text: string
  /** The errors shown to the user, including "Reconnecting…". */
  complaints: string[]
  threadId: string
  stderr: string
  seconds: number
}

export interface Codex extends AsyncDisposable {
  /** `codex exec` in a new conversation. Throws after 110 s. */
  exec(prompt: string): Promise<CodexRun>
  /** `codex exec resume` of an earlier conversation of this home. */
  resume(threadId: string, prompt: string): Promise<CodexRun>
  /** Starts `codex exec` and does not wait; SIGKILL is the user closing the terminal. */
  start(prompt: string): { kill(): Promise<void> }
  /** `codex app-server`: one process for many turns, as an editor keeps it. */
  appServer(): Promise<AppServer>
  /** The slugs that `codex debug models` prints after asking the provider. */
  listModels(): Promise<string[]>
  /** The slugs of the catalog that the last run got from the provider; `null` if it requested none. */
  cachedModels(): string[] | null
  /** Connections to anything but the provider: `CONNECT host:443` to other machines, `GET /path` to ChatGPT itself. */
  readonly sideCalls: readonly string[]
}

export function installCodex(options: CodexOptions): Codex {
  const home = mkdtempSync(join(tmpdir(), 'codex-home-'))
  const trap = startTrap()
  mkdirSync(join(home, 'work'))
  writeFileSync(join(home, 'config.toml'), configToml(options, trap.url))
  if ('chatGptLogin' in options.auth) writeFileSync(join(home, 'auth.json'), options.auth.chatGptLogin)
  const env = environment(home, options, trap.url)
  const run = async (args: string[]) => parseRun(await finish(spawn(args, home, env)))
  return {
    exec: (prompt) => run([...EXEC, prompt]),
    resume: (threadId, prompt) => run([...EXEC, 'resume', threadId, prompt]),
    start(prompt) {
      const child = spawn([...EXEC, prompt], home, env)
      return {
        async kill() {
          child.kill('SIGKILL')
          await child.exited
        },
      }
    },
    appServer() {
      const cwd = join(home, 'work')
      return driveAppServer(Bun.spawn([nativeBinary(), 'app-server'], { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] }))
    },
    async listModels() {
      const { stdout } = await finish(spawn(['debug', 'models'], home, env))
      const { models }: { models: { slug: string }[] } = JSON.parse(stdout)
      return models.map(({ slug }) => slug)
    },
    cachedModels: () => readCache(join(home, 'models_cache.json')),
    sideCalls: trap.calls,
    async [Symbol.asyncDispose]() {
      trap.stop()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

const EXEC = ['exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox']

/** Plugins and apps would fetch their catalogs at every start; the hosted service's own address leads into the trap. */
function configToml(options: CodexOptions, trapUrl: string): string {
  const { baseUrl, auth, listsModels = false, model = 'gpt-6.1-sol', headers = {} } = options
  const { sockets = false, compactsRemotely = false, searchesWeb = false } = options
  const provider = [
    'name = "lb"', // "OpenAI" with a ChatGPT login rejects plain http
    `base_url = ${quote(baseUrl)}`,
    'wire_api = "responses"',
    `supports_websockets = ${sockets}`,
    ...(compactsRemotely ? ['capabilities = { remote_compaction = "v2" }'] : []),
    ...(searchesWeb ? ['supports_standalone_web_search = true'] : []),
    'key' in auth ? `env_key = "${KEY_VARIABLE}"` : 'requires_openai_auth = true',
    ...(listsModels ? [`model_catalog_url = ${quote(`${baseUrl}/models`)}`] : []),
    ...Object.entries(headers).map(([name, value]) => `http_headers.${quote(name)} = ${quote(value)}`),
  ]
  const pasted = options.pasted?.config
  return [
    ...(pasted === undefined
      ? [`model = ${quote(model)}`, 'model_provider = "lb"']
      : pasted.startsWith('model = ')
        ? []
        : [`model = ${quote(model)}`]),
    `chatgpt_base_url = ${quote(options.chatgptBaseUrl ?? `${trapUrl}/backend-api/`)}`,
    'check_for_update_on_startup = false',
    ...(searchesWeb ? ['web_search = "live"'] : []),
    'cli_auth_credentials_store = "file"',
    ...(pasted === undefined ? [] : [pasted]),
    '[analytics]',
    'enabled = false',
    '[features]',
    'plugins = false',
    ...(searchesWeb ? ['standalone_web_search = true'] : []),
    'apps = false',
    ...(pasted === undefined ? ['[model_providers.lb]', ...provider] : []),
    ...(options.mcpServer === undefined
      ? []
      : ['[mcp_servers.sluice]', `url = ${quote(options.mcpServer)}`, `bearer_token_env_var = "${KEY_VARIABLE}"`]),
    '',
  ].join('\n')
}

/** A TOML basic string; the values here only need JSON's escapes. */
function quote(text: string): string {
  return JSON.stringify(text)
}

/** Inherits only PATH from the environment, and every connection to another machine leads into the trap. */
function environment(home: string, { auth, pasted }: CodexOptions, trapUrl: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: home,
    CODEX_HOME: home,
    TZ: 'UTC',
    HTTP_PROXY: trapUrl,
    HTTPS_PROXY: trapUrl,
    ALL_PROXY: trapUrl,
    NO_PROXY: '127.0.0.1,localhost',
    CODEX_REFRESH_TOKEN_URL_OVERRIDE: `${trapUrl}/oauth/token`,
    ...('key' in auth ? { [KEY_VARIABLE]: auth.key } : {}),
    ...pasted?.variables,
  }
}

type Child = Bun.Subprocess<'ignore', 'pipe', 'pipe'>

/** The native binary without npm's wrapper in between, which would leave it running when it is killed. */
function spawn(args: string[], home: string, env: Record<string, string>): Child {
  return Bun.spawn([nativeBinary(), ...args], {
    cwd: join(home, 'work'),
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: DEADLINE_MS,
    killSignal: 'SIGKILL',
  })
}

function nativeBinary(): string {
  const pattern = `codex-${process.platform}-${process.arch}/vendor/*/bin/codex`
  const [found] = new Bun.Glob(pattern).scanSync({ cwd: PACKAGES, followSymlinks: true })
  if (!found) throw new Error('The Codex CLI is not installed; run "bun install" in tests/clients.')
  return join(PACKAGES, found)
}

interface Finished {
  exitCode: number
  stdout: string
  stderr: string
  seconds: number
}

async function finish(child: Child): Promise<Finished> {
  const startedNs = Bun.nanoseconds()
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (child.signalCode) throw new Error(`codex was ended by ${child.signalCode}.\n${stdout}\n${stderr}`)
  return { exitCode, stdout, stderr, seconds: (Bun.nanoseconds() - startedNs) / 1e9 }
}

function parseRun({ stdout, ...rest }: Finished): CodexRun {
  const lines = stdout.split('\n').filter((line) => line !== '')
  const events: CodexEvent[] = lines.map((line) => JSON.parse(line))
  return {
    ...rest,
    events,
    text: events
      .flatMap(({ type, item }) => (type === 'item.completed' && item?.type === 'agent_message' ? item.text : []))
      .join('\n'),
    complaints: events.flatMap(({ type, message, error }) =>
      type === 'error' || type === 'turn.failed' ? (message ?? error?.message ?? type) : [],
    ),
    threadId: events.find(({ type }) => type === 'thread.started')?.thread_id ?? '',
  }
}

function readCache(path: string): string[] | null {
  if (!existsSync(path)) return null
  const { models }: { models: { slug: string }[] } = JSON.parse(readFileSync(path, 'utf8'))
  return models.map(({ slug }) => slug)
}
