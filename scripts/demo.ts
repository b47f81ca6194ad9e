/** `npm run demo`: Sluice over a stand-in upstream, with a made-up week of requests and light traffic, until it is stopped. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { seededRandom } from '../src/lib/random.ts'
import { createUpstream } from '../tests/support/upstream/app.ts'
import { codexConfig, KEY_FROM_SHELL, variables } from '../views/keys/snippets.ts'
import { MEMBER } from './demo/member.ts'
import { readOptions, USAGE } from './demo/options.ts'
import { addToUpstream } from './demo/pool.ts'
import { type Seeded, seedDemo } from './demo/seed.ts'
import { startSignIn } from './demo/sign-in.ts'
import { sendTraffic } from './demo/traffic.ts'

const ROOT = resolve(import.meta.dir, '..')
const MODEL = 'gpt-5.5'
const OWN_KEY = 'laptop'

interface Service {
  url: string
  /** Resolves with the exit code when the process ends. */
  ended: Promise<number>
  /** Its server process ends with it, so that nothing is written after the folder is deleted. */
  stop(): void
}

const main = async (): Promise<void> => {
  const options = getOptions()
  if (options === null) {
    process.stdout.write(USAGE)
    return
  }
  const now = Date.now()
  const upstream = createUpstream()
  addToUpstream(upstream, now)
  const listening = upstream.listen()
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-demo-'))
  process.on('exit', () => rmSync(dataDir, { recursive: true, force: true }))
  const stopped = Promise.withResolvers<number>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stopped.resolve(0))
  const seeded = await seedDemo({ dataDir, upstream, now, seed: options.seed, requests: options.requests })
  const service = await startService({ port: options.port, dataDir, upstreamUrl: listening.url })
  if (service) {
    process.stdout.write(instructions(service.url, seeded))
    if (options.hasTraffic) void sendTraffic(service.url, seeded.keys, seededRandom(options.seed))
    const exitCode = await Promise.race([stopped.promise, service.ended])
    service.stop()
    await service.ended
    process.exit(exitCode)
  }
  process.exit(1)
}

/** Ends the process with a message about an invalid option, before anything is stored. */
const getOptions = (): ReturnType<typeof readOptions> => {
  try {
    return readOptions(process.argv.slice(2), process.env)
  } catch (err) {
    process.stderr.write(`sluice demo: ${err instanceof Error ? err.message : err}\n\n${USAGE}`)
    return process.exit(2)
  }
}

interface ServiceOptions {
  port: string
  dataDir: string
  upstreamUrl: string
}

/** Null when the server ended before it listened; it has printed the reason. Its environment is PATH only. */
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
      SLUICE_SHUTDOWN_DRAIN_SECONDS: '0',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  process.on('exit', () => child.kill('SIGKILL')) // its log is deleted with the folder
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
      return { url, ended: child.exited, stop: () => child.kill('SIGTERM') }
    }
  }
}

/** The greeting and the URL arrived together. What follows are warnings. */
const passOn = async (reader: { read(): Promise<{ done: boolean; value?: Uint8Array }> }): Promise<void> => {
  for (let chunk = await reader.read(); chunk.value; chunk = await reader.read()) process.stdout.write(chunk.value)
}

const indented = (text: string): string => text.replace(/^(?=.)/gm, '  ')

const instructions = (url: string, { username, password, keys }: Seeded): string => {
  const key = keys.get(OWN_KEY) ?? ''
  return `
Sluice demo. The accounts and requests are made up, and nothing leaves this machine.

  Open       ${startSignIn({ url, username, password })}   (signs you in)
  Dashboard  ${url}/dashboard
  User name  ${username}
  Password   ${password}
  Member     ${MEMBER} (same password)
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
}

await main()
