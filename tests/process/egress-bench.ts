/** An upstream in this process, and a data folder with one account and one key, for servers that use proxies. */
import { expect } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runInProcess } from '../support/cli.ts'
import { type RunningServer, spawnServer } from '../support/spawn.ts'
import { createUpstream, type Upstream } from '../support/upstream/app.ts'
import { cert } from './certificate.ts'

export interface EgressBench extends AsyncDisposable {
  upstream: Upstream
  port: number
  dataDir: string
  key: string
  /** The environment variables that make a server trust the TLS upstream. */
  trust: Record<string, string>
  /** A server whose upstream is at `origin`. */
  serve(origin: string, env: Record<string, string>): Promise<RunningServer>
  /** `POST /oauth/token` and the like, as the upstream saw them. */
  pathsSeen(): Set<string>
}

export const startEgressBench = async (): Promise<EgressBench> => {
  const upstream = createUpstream()
  const account = upstream.addAccount()
  const { url, stop } = upstream.listen()
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-egress-'))
  const authFile = join(dataDir, 'auth.json')
  const ca = join(dataDir, 'ca.pem')
  writeFileSync(authFile, account.authJson())
  writeFileSync(ca, cert)
  expect((await runInProcess(['accounts', 'import', authFile], { dataDir })).exitCode).toBe(0)
  await transport('http', dataDir)
  const made = await runInProcess(['keys', 'create', '--name', 'egress'], { dataDir })
  return {
    upstream,
    port: Number(new URL(url).port),
    dataDir,
    key: made.stdout.trim(),
    trust: { NODE_EXTRA_CA_CERTS: ca },
    serve: (origin, env) =>
      spawnServer({
        dataDir,
        env: { CODEX_LB_UPSTREAM_BASE_URL: `${origin}/backend-api`, CODEX_LB_AUTH_BASE_URL: origin, ...env },
      }),
    pathsSeen: () => new Set(upstream.requests.map(({ method, path }) => `${method} ${path}`)),
    async [Symbol.asyncDispose]() {
      await stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Which of its two transports turns take to the upstream. */
export const transport = async (name: 'http' | 'websocket', dataDir: string): Promise<void> => {
  const { exitCode } = await runInProcess(['settings', 'set', `upstreamStreamTransport=${name}`], { dataDir })
  expect(exitCode).toBe(0)
}
