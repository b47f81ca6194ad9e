/** `npm run demo`: stand-in upstream, service, three accounts and a key, with client settings to paste, until it is stopped. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { AccountOptions } from '../tests/support/upstream/accounts.ts'
import { createUpstream, type Upstream } from '../tests/support/upstream/app.ts'
import { codexConfig, KEY_FROM_SHELL, variables } from '../views/keys/snippets.ts'

const ROOT = resolve(import.meta.dir, '..')
const MODEL = 'gpt-5.5'
const HOUR_MS = 3_600_000
const TRAFFIC_PAUSE_MS = 2000

const USAGE = `Sluice with made-up accounts and a stand-in for ChatGPT. Options:
  --port <n>   port on 127.0.0.1 (default: 2455; 0 picks a free one)
  --traffic    send a small request every two seconds
`

interface Service {
  url: string
  /** Resolves with the exit code when it ends, by itself or not. */
  ended: Promise<number>
  kill(): void
}

/** One hardly used, one in the middle, one nearly used up. */
const accountsAt = (now: number): AccountOptions[] => [
  { email: 'ada@example.test', plan: 'pro', usage: usage(12, 31, now) },
  { email: 'grace@example.test', plan: 'plus', usage: usage(64, 48, now) },
  { email: 'alan@example.test', plan: 'team', usage: usage(97, 82, now) },
]

const usage = (fiveHourPercent: number, weekPercent: number, now: number): AccountOptions['usage'] => ({
  primary: { usedPercent: fiveHourPercent, windowMinutes: 300, resetAt: now + 2.2 * HOUR_MS },
  secondary: { usedPercent: weekPercent, windowMinutes: 10_080, resetAt: now + 75 * HOUR_MS },
})

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: { port: { type: 'string', default: '2455' }, traffic: { type: 'boolean' }, help: { type: 'boolean' } },
  })
  if (values.help) {
    process.stdout.write(USAGE)
    return
  }
  const upstream = createUpstream()
  for (const account of accountsAt(Date.now())) upstream.addAccount(account)
  const listening = upstream.listen()
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-demo-'))
  process.on('exit', () => rmSync(dataDir, { recursive: true, force: true }))
  const stopped = Promise.withResolvers<number>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stopped.resolve(0))
  const service = await startService({ port: values.port, dataDir, upstreamUrl: listening.url })
  if (service) {
    const key = await setUp(service.url, upstream)
    process.stdout.write(instructions(service.url, key))
    if (values.traffic) void sendTraffic(service.url, key)
    const exitCode = await Promise.race([stopped.promise, service.ended])
    service.kill()
    await service.ended
    process.exit(exitCode)
  }
  process.exit(1)
}

interface ServiceOptions {
  port: string
  dataDir: string
  upstreamUrl: string
}

/** Null when it ended before it listened; it has said why. Nothing of the caller's environment but PATH reaches it. */
const startService = async ({ port, dataDir, upstreamUrl }: ServiceOptions): Promise<Service | null> => {
  const child = Bun.spawn([process.execPath, 'src/main.ts', 'serve'], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: dataDir,
      HOST: '127.0.0.1',
      PORT: port,
      SLUICE_DATA_DIR: dataDir,
      SLUICE_UPSTREAM_BASE_URL: `${upstreamUrl}/backend-api`,
      SLUICE_AUTH_BASE_URL: upstreamUrl,
      SLUICE_LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  process.on('exit', () => child.kill('SIGKILL')) // what it wrote goes with the folder
  let output = ''
  const decoder = new TextDecoder()
  const reader = child.stdout.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return null
    output += decoder.decode(value, { stream: true })
    const url = /listening on (http:\S+)\n/.exec(output)?.[1]
    if (url) {
      void passOn(reader)
      return { url, ended: child.exited, kill: () => child.kill('SIGKILL') }
    }
  }
}

/** Its greeting came in one piece with the URL; what follows are warnings. */
const passOn = async (reader: { read(): Promise<{ done: boolean; value?: Uint8Array }> }): Promise<void> => {
  for (let chunk = await reader.read(); chunk.value; chunk = await reader.read()) process.stdout.write(chunk.value)
}

/** Through the API, as an operator would; returns the key. */
const setUp = async (url: string, upstream: Upstream): Promise<string> => {
  const form = new FormData()
  for (const account of upstream.accounts)
    form.append('auth_json', new File([account.authJson()], `${account.email}.json`))
  await ask(`${url}/api/accounts/import`, { method: 'POST', body: form })
  await ask(`${url}/api/settings`, { method: 'PATCH', ...json({ apiKeyAuthEnabled: true }) })
  const made = await ask(`${url}/api/api-keys/`, { method: 'POST', ...json({ name: 'demo' }) })
  return ((await made.json()) as { key: string }).key // as: the answer to a new key
}

const json = (value: unknown) => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) })

const ask = async (url: string, init: RequestInit): Promise<Response> => {
  const response = await fetch(url, init)
  if (!response.ok) throw new Error(`${init.method} ${url} answered ${response.status}: ${await response.text()}`)
  return response
}

const indented = (text: string): string => text.replace(/^(?=.)/gm, '  ')

const instructions = (url: string, key: string): string => `
Sluice demo. The accounts are made up, and nothing leaves this machine.

  Dashboard  ${url}/dashboard
  API key    ${key}

Codex CLI, in ~/.codex/config.toml:

${indented(codexConfig(url, KEY_FROM_SHELL, MODEL))}

In the shell that starts it:

  export SLUICE_API_KEY=${key}

OpenAI SDKs:

${indented(variables({ baseUrl: url, key }))}

Send a first request:

  curl -sN ${url}/v1/responses -H 'authorization: Bearer ${key}' -H 'content-type: application/json' -d '{"model":"${MODEL}","input":"Say hello.","stream":true}'

Press Ctrl-C to stop the demo and delete its data.
`

/** Until the process ends; a turn that fails is in the request log. */
const sendTraffic = async (url: string, key: string): Promise<void> => {
  for (;;) {
    const { headers, body } = json({ model: MODEL, input: 'Say hello.', stream: true })
    const asked = fetch(`${url}/v1/responses`, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${key}` },
      body,
    })
    await asked.then((response) => response.text()).catch(() => {})
    await Bun.sleep(TRAFFIC_PAUSE_MS)
  }
}

await main()
