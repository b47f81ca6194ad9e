/** Sluice set up for a reverse proxy as documented, with a stand-in upstream that sends events on demand. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCodeBlocks } from '../support/fenced.ts'
import { type RunningServer, runCommand, spawnServer } from '../support/spawn.ts'
import { createUpstream, type Upstream } from '../support/upstream/app.ts'
import type { Sleep } from '../support/upstream/stream.ts'
import { MANUAL } from './reverse-proxies-servers.ts'

export const PASSWORD = 'correct horse battery'

export interface World extends AsyncDisposable {
  upstream: Upstream
  gate: Gate
  server: RunningServer
  /** An API key; key authentication is on. */
  key: string
}

interface WorldOptions {
  /** From the document; the variables in it are set unchanged. */
  headings: readonly string[]
  /** Emails. */
  accounts: readonly string[]
}

/** `admin` has a password. */
export const startWorld = async ({ headings, accounts }: WorldOptions): Promise<World> => {
  const gate = createGate()
  const upstream = createUpstream({ sleep: gate.sleep })
  const standIn = upstream.listen()
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-behind-'))
  const env = {
    CODEX_LB_UPSTREAM_BASE_URL: `${standIn.url}/backend-api`,
    CODEX_LB_AUTH_BASE_URL: standIn.url,
    ...Object.assign({}, ...headings.map(variablesUnder)),
  }
  const sluice = (args: string[], stdin?: string) => command(args, { dataDir, env, ...(stdin && { stdin }) })
  const tearDown = async () => {
    gate.open()
    await standIn.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
  try {
    const files = accounts.map((email) => {
      const file = join(dataDir, `${email}.json`)
      writeFileSync(file, upstream.addAccount({ email }).authJson(), { mode: 0o600 })
      return file
    })
    await sluice(['accounts', 'import', ...files])
    const [key] = await Promise.all([
      sluice(['keys', 'create', '--name', 'test']).then((printed) => printed.trim()),
      sluice(['settings', 'set', 'apiKeyAuthEnabled=true']),
      sluice(['user', 'create-admin', 'admin'], `${PASSWORD}\n`),
    ])
    const server = await spawnServer({ dataDir, env })
    const dispose = async () => {
      await server[Symbol.asyncDispose]()
      await tearDown()
    }
    return { upstream, gate, server, key, [Symbol.asyncDispose]: dispose }
  } catch (error) {
    await tearDown()
    throw error
  }
}

/** `NAME=value`, a line each. */
const variablesUnder = (heading: string): Record<string, string> =>
  Object.fromEntries(
    getCodeBlocks(MANUAL, heading, 'sh').flatMap((text) => {
      const lines = text.trim().split('\n')
      return lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
    }),
  )

type CommandOptions = { dataDir: string; env: Record<string, string>; stdin?: string }

const command = async (args: string[], options: CommandOptions): Promise<string> => {
  const { exitCode, stdout, stderr } = await runCommand(args, options)
  if (exitCode !== 0) throw new Error(`sluice ${args.join(' ')} ended with ${exitCode}: ${stderr}`)
  return stdout
}

/** Before every event but the first of a slow response. */
interface Gate {
  sleep: Sleep
  /** From now on the first `passing` events of those go by, and every further one waits for `next`. */
  shut(passing: number): void
  /** Releases one event, as soon as there is one. */
  next(): Promise<void>
  open(): void
}

const createGate = (): Gate => {
  let passing = Number.POSITIVE_INFINITY
  const waiting: (() => void)[] = []
  let arrival = Promise.withResolvers<void>()
  return {
    async sleep(_ms, signal) {
      if (passing-- > 0) return
      const { promise, resolve } = Promise.withResolvers<void>()
      signal?.addEventListener('abort', () => resolve(), { once: true })
      waiting.push(resolve)
      arrival.resolve()
      await promise
    },
    shut(count) {
      passing = count
    },
    async next() {
      while (waiting.length === 0) {
        arrival = Promise.withResolvers()
        await arrival.promise
      }
      waiting.shift()?.()
    },
    open() {
      passing = Number.POSITIVE_INFINITY
      for (const leave of waiting.splice(0)) leave()
    },
  }
}
