/** What is measured side by side: the upstream itself, the floor, nginx and Sluice. */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { freePort } from '../tests/support/free-port.ts'
import type { Target } from './driver.ts'
import { RESPONSES_PATH, requestBody, requestHeaders, sessionId } from './payload.ts'
import { type Child, runCommand, startHelper, startServer, waitForAnswer } from './processes.ts'
import type { UpstreamMode, UpstreamStats } from './upstream.ts'

export type TargetName = 'direct' | 'floor' | 'sluice' | 'nginx'
export type RunningTarget = Target & { name: TargetName; child: Child }

/** A seeded Sluice data folder and the API key made in it. */
export type SluiceSeed = { command: string[]; dataDir: string; apiKey: string; upstreamUrl: string; serve: string[] }

export type Upstream = Child & {
  setMode: (mode: UpstreamMode) => Promise<void>
  stats: () => Promise<UpstreamStats>
}

const ACCOUNTS = 5

export async function startUpstream(): Promise<Upstream> {
  const child = await startHelper('bench/upstream.ts', {})
  return {
    ...child,
    setMode: async (mode) => {
      const response = await fetch(`${child.url}/bench/mode`, { method: 'POST', body: JSON.stringify(mode) })
      await response.arrayBuffer()
    },
    stats: async () => (await fetch(`${child.url}/bench/stats`)).json() as Promise<UpstreamStats>, // our own helper
  }
}

export function direct(upstream: Child): RunningTarget {
  return { name: 'direct', url: upstream.url, apiKey: 'none', child: upstream }
}

export async function startFloor(upstream: Child, env: Record<string, string> = {}): Promise<RunningTarget> {
  const child = await startHelper('bench/floor.ts', {
    ...env,
    BENCH_UPSTREAM_URL: upstream.url,
    BUN_CONFIG_MAX_HTTP_REQUESTS: '16384',
  })
  return { name: 'floor', url: child.url, apiKey: 'none', child }
}

/**
 * Makes the process collect garbage on a signal (`collect.ts`). Not for measurements of the start, because it takes
 * time to load.
 */
export const WITH_COLLECT_SIGNAL = { BUN_OPTIONS: '--preload ./bench/collect.ts' }

/** The floor for sockets, in a process without other work. */
export async function startFloorSockets(upstream: Child): Promise<RunningTarget> {
  const child = await startHelper('bench/floor-sockets.ts', {
    ...WITH_COLLECT_SIGNAL,
    BENCH_UPSTREAM_URL: upstream.url,
  })
  return { name: 'floor', url: child.url, apiKey: 'none', child }
}

/** Starts nginx as one process with unbuffered `proxy_pass`; null when it is not installed. */
export async function startNginx(upstream: Child, workDir: string): Promise<RunningTarget | null> {
  const nginx = Bun.which('nginx') ?? Bun.which('nginx', { PATH: '/usr/sbin:/usr/local/sbin' })
  if (!nginx) return null
  const port = freePort()
  const folder = join(workDir, 'nginx')
  await mkdir(folder, { recursive: true })
  await Bun.write(join(folder, 'nginx.conf'), nginxConfig(port, new URL(upstream.url).host, folder))
  const command = [nginx, '-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr']
  const child = startServer(command, port, {}, join(folder, 'stderr.log'))
  await waitForAnswer(`${child.url}/bench/stats`, 5_000)
  return { name: 'nginx', url: child.url, apiKey: 'none', child }
}

/** How Sluice is started: the executable or the source. Null when it does not exist. */
export function sluiceCommand(kind: 'source' | 'binary'): string[] | null {
  if (kind === 'binary') return existsSync('dist/sluice') ? ['dist/sluice'] : null
  return existsSync('src/main.ts') ? ['bun', 'src/main.ts'] : null
}

export type SeedOptions = {
  authJsons?: string[]
  /** The upstream transport. `http` when measuring HTTP, because the floor does not open a socket per turn. */
  transport?: 'http' | 'auto'
  /** Arguments of `serve`. */
  serve?: string[]
}

/** Fills a new data folder with the command line: five accounts, a key with a limit, key authentication on. */
export async function seedSluice(
  command: string[],
  upstreamUrl: string,
  workDir: string,
  { authJsons = benchAuthJsons(ACCOUNTS), transport = 'http', serve = [] }: SeedOptions = {},
): Promise<SluiceSeed> {
  const dataDir = await mkdtemp(join(workDir, 'data-'))
  const env = sluiceEnv(dataDir, upstreamUrl)
  const files = authJsons.map((_, n) => join(workDir, `${basename(dataDir)}-auth-${n}.json`))
  await Promise.all(authJsons.map((text, n) => Bun.write(files[n] ?? '', text)))
  await runCommand([...command, 'accounts', 'import', ...files], env)
  const create = ['keys', 'create', '--name', 'bench', '--limit', 'total_tokens:weekly:1000000000000', '--json']
  const printed = await runCommand([...command, ...create], env)
  await runCommand(
    [
      ...command,
      'settings',
      'set',
      'apiKeyAuthEnabled=true',
      'proxyAccountStreamLimit=0',
      'socketsPerKey=100000',
      'socketsPerClient=100000',
      `upstreamStreamTransport=${transport}`,
    ],
    env,
  )
  const { key } = JSON.parse(printed) as { key: string } // the command's documented output
  return { command, dataDir, apiKey: key, upstreamUrl, serve }
}

/** Starts Sluice on a seeded folder and waits until it answers a turn with 200. Set the upstream to `burst` first. */
export async function startSluice(seed: SluiceSeed, env: Record<string, string> = {}): Promise<RunningTarget> {
  const child = launchSluice(seed, env)
  const target: RunningTarget = { name: 'sluice', url: child.url, apiKey: seed.apiKey, child }
  await waitForTurn(target).catch(async (error: unknown) => {
    await child.stop()
    throw new Error(`sluice answers no turn: ${error}\n${child.errors()}`)
  })
  return target
}

/** Starts Sluice without waiting. */
export function launchSluice(seed: SluiceSeed, extra: Record<string, string> = {}): Child {
  const port = freePort()
  const env = { ...sluiceEnv(seed.dataDir, seed.upstreamUrl), PORT: String(port), HOST: '127.0.0.1', ...extra }
  return startServer(
    [...seed.command, 'serve', ...seed.serve],
    port,
    env,
    join(seed.dataDir, '..', `stderr-${port}.log`),
  )
}

export async function makeWorkDir(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'sluice-bench-'))
}

export async function removeWorkDir(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
}

async function waitForTurn(target: Target): Promise<void> {
  const deadline = performance.now() + 15_000
  let last = 'no answer'
  while (performance.now() < deadline) {
    const id = sessionId(0)
    const headers = requestHeaders(id, target.apiKey)
    const sent = fetch(target.url + RESPONSES_PATH, { method: 'POST', headers, body: requestBody('2kb', id) })
    const [status, text] = await sent
      .then(async (r) => [r.status, await r.text()] as const)
      .catch((e) => [0, `${e}`] as const)
    if (status === 200 && text.includes('response.completed')) return
    last = `${status} ${text.slice(0, 300)}`
    await Bun.sleep(50)
  }
  throw new Error(last)
}

/** Its data folder and its upstream. */
export function sluiceEnv(dataDir: string, upstreamUrl: string): Record<string, string> {
  return {
    CODEX_LB_DATA_DIR: dataDir,
    CODEX_LB_UPSTREAM_BASE_URL: `${upstreamUrl}/backend-api`,
    CODEX_LB_AUTH_BASE_URL: upstreamUrl,
  }
}

/** For this number of accounts. */
export function benchAuthJsons(count: number): string[] {
  return Array.from({ length: count }, (_, n) => benchAuthJson(n))
}

/** What Codex writes after a sign-in, with unsigned tokens. */
function benchAuthJson(n: number): string {
  const claims = {
    sub: `user-bench-${n}`,
    email: `bench${n}@example.test`,
    iat: Math.floor(Date.now() / 1000),
    exp: Math.floor(Date.now() / 1000) + 864_000,
    'https://api.openai.com/auth': {
      chatgpt_account_id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
      chatgpt_user_id: `user-bench-${n}`,
      chatgpt_plan_type: 'plus',
    },
  }
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const jwt = `${part({ alg: 'none', typ: 'JWT' })}.${part(claims)}.${part('unsigned')}`
  const tokens = {
    id_token: jwt,
    access_token: jwt,
    refresh_token: `rt_bench_${n}`,
    account_id: claims['https://api.openai.com/auth'].chatgpt_account_id,
  }
  return JSON.stringify({ OPENAI_API_KEY: null, tokens, last_refresh: new Date().toISOString() })
}

function nginxConfig(port: number, upstreamHost: string, folder: string): string {
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${folder}/${name};`,
  )
  return `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
worker_rlimit_nofile 16384;
events { worker_connections 8192; }
http {
${temp.join('\n')}
  access_log off;
  keepalive_requests 100000000;
  map $http_upgrade $hop { default Upgrade; "" ""; }
  upstream service { server ${upstreamHost}; keepalive 64; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    client_max_body_size 0;
    client_body_buffer_size 256k;
    location / {
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $hop;
      proxy_buffering off;
      proxy_read_timeout 1h;
    }
  }
}
`
}
