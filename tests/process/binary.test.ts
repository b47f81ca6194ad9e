/** The executable of a release starts in an empty folder and does not trust its working directory. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { build } from '../../scripts/build.ts'
import { type RunningServer, runCommand, spawnServer } from '../support/spawn.ts'
import { until } from '../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-binary-'))
/** The one that `npm test` has built, or its own. */
const { SLUICE_TEST_EXECUTABLE } = process.env
const binary = SLUICE_TEST_EXECUTABLE ?? join(folder, 'built', 'sluice')
const dataDir = join(folder, 'data')
const hostile = join(folder, 'hostile')
const marker = join(folder, 'the-preload-ran')
const scratch = join(folder, 'scratch')

let isMounted = false
let server: RunningServer

beforeAll(async () => {
  if (!SLUICE_TEST_EXECUTABLE) expect(await build({ outfile: binary })).toBe(0)
  fillHostileFolder()
  isMounted = spoilScratch()
  server = await spawnServer({ command: [binary], dataDir, cwd: hostile, env: { TMPDIR: scratch } })
}, 120_000)

afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  if (isMounted) Bun.spawnSync(['umount', scratch])
  rmSync(folder, { recursive: true })
})

test('no other build output is left', () => {
  expect(readdirSync(dirname(binary))).toEqual(['sluice'])
})

test('it works in a folder with hostile files', async () => {
  const response = await fetch(`${server.url}/health/live`)
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({ status: 'ok' })
})

test('neither the .env nor the bunfig.toml of the working directory is read', () => {
  expect(existsSync(marker)).toBe(false)
  expect(server.output()).not.toContain('not-a-level')
  expect(readdirSync(hostile).sort()).toEqual(['.env', 'bunfig.toml', 'preload.ts'])
})

test('the database is created by its own migrations, readable by the owner alone', () => {
  expect(statSync(dataDir).mode & 0o777).toBe(0o700)
  expect(statSync(join(dataDir, 'sluice.db')).mode & 0o777).toBe(0o600)
})

test('the page comes with its stylesheet, both from inside the file', async () => {
  const page = await fetch(`${server.url}/dashboard`, { headers: { accept: 'text/html' } })
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toContain('text/html')
  const href = /<link[^>]+href="([^"]+\.css[^"]*)"/.exec(await page.text())?.[1]
  expect(href).toBeString()

  const sheet = await fetch(new URL(href ?? '', server.url))
  expect(sheet.status).toBe(200)
  expect(sheet.headers.get('content-type')).toContain('text/css')
  expect((await sheet.text()).length).toBeGreaterThan(200)
})

test('the log reader thread is inside the file, too', async () => {
  const response = await fetch(`${server.url}/api/request-logs`)
  expect([response.status, await response.json()]).toMatchObject([200, { requests: [] }])
})

test('the thread that checkpoints the write-ahead log is inside the file, too', async () => {
  const size = () => statSync(join(dataDir, 'sluice.db')).size
  const before = size()
  const body = '{"model":"gpt-5.4","input":"hello"}'
  const client = async () => {
    while (size() === before)
      expect((await fetch(`${server.url}/v1/responses`, { method: 'POST', body })).status).toBe(503)
  }
  await Promise.all(Array.from({ length: 16 }, client))
  expect(statSync(join(dataDir, 'sluice.db-wal')).size).toBeLessThan(12_000_000) // no commit has done it
  expect(server.output().includes('could not be carried over')).toBe(false)
}, 120_000)

test('an administrator created from the shell signs in and is offered a passkey', async () => {
  const name = { command: [binary], dataDir, cwd: hostile, stdin: 'a long password' }
  expect((await runCommand(['user', 'create-admin', 'admin'], name)).exitCode).toBe(0)
  const origin = server.url.replace('127.0.0.1', 'localhost')
  const post = (path: string, cookie = '', body = '{}') =>
    fetch(`${origin}/api/dashboard-auth/${path}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', cookie },
    })
  const signedIn = await post('password/login', '', JSON.stringify({ password: 'a long password' }))
  expect(signedIn.status).toBe(200)
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0]
  const started = await post('passkeys/register/start', cookie)
  expect(started.status).toBe(200)
  expect(await started.json()).toMatchObject({ rp: { id: 'localhost' }, user: { name: 'admin' } })
  // Past the options: the verifying half of the library is there, too.
  const response = { clientDataJSON: Buffer.from('{"challenge":"x"}').toString('base64url'), attestationObject: 'oA' }
  const credential = { id: 'AA', rawId: 'AA', type: 'public-key', response }
  const refused = await post(
    'passkeys/register/finish',
    cookie,
    JSON.stringify({ name: 'Phone', response: credential }),
  )
  expect(await refused.json()).toMatchObject({ error: { code: 'invalid_passkey' } })
  await until(() => server.output().includes('Unexpected registration response type'), server.output)
})

test('its unit creates a user for a folder with any name, and can read a key in a home folder', async () => {
  const printed = async (env: Record<string, string>) =>
    (await runCommand(['service', 'print'], { command: [binary], cwd: hostile, env })).stdout
  const unit = await printed({ CODEX_LB_DATA_DIR: "/srv/ada's data" })
  expect(unit).toContain(`install -d -o sluice -m 0700 '/srv/ada'\\''s data'\n`)
  expect(unit).toContain('\nProtectHome=true\n')
  const apart = { CODEX_LB_DATA_DIR: '/srv/sluice', CODEX_LB_ENCRYPTION_KEY_FILE: '/home/ada/sluice.key' }
  expect(await printed(apart)).toContain('\nProtectHome=false\n')
})

test('an unusable temporary folder is not used', () => {
  expect(isMounted ? readdirSync(scratch) : []).toEqual([])
})

test('healthcheck distinguishes a running server from a stopped one, and SIGTERM ends it cleanly', async () => {
  const healthcheck = () => runCommand(['healthcheck'], { command: [binary], cwd: hostile, env: server.env })
  expect((await healthcheck()).exitCode).toBe(0)
  expect(await server.stop()).toBe(0)
  expect((await healthcheck()).exitCode).not.toBe(0)
}, 120_000)

/** Every file here would take effect in a binary built without the flags of `buildCommand`. */
function fillHostileFolder(): void {
  mkdirSync(hostile)
  writeFileSync(join(hostile, '.env'), 'CODEX_LB_LOG_LEVEL=not-a-level\nCODEX_LB_UPSTREAM_BASE_URL=not a url\n')
  writeFileSync(join(hostile, 'bunfig.toml'), 'preload = ["./preload.ts"]\n')
  writeFileSync(join(hostile, 'preload.ts'), `require('node:fs').writeFileSync(${JSON.stringify(marker)}, '')\n`)
}

/** No program may be run from the scratch folder or, if mounting is not allowed, it is not a folder at all. */
function spoilScratch(): boolean {
  mkdirSync(scratch)
  const mount = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'noexec,size=16m', 'tmpfs', scratch])
  if (mount.exitCode === 0) return true
  rmSync(scratch, { recursive: true })
  writeFileSync(scratch, '')
  return false
}
