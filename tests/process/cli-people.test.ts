/** Regaining access from a shell: users, the bootstrap token and the audit log, alone and beside a running server. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commit } from '../../db/commit.ts'
import { openDatabase } from '../../db/open.ts'
import { users } from '../../db/schema/people.ts'
import { createPasswords } from '../../src/auth/passwords.ts'
import { purgeAuditLog } from '../../src/model/audit/audit-purge.ts'
import { createDatabase, runInProcess } from '../support/cli.ts'
import { PROGRAM, type RunningServer, runCommand, spawnServer } from '../support/spawn.ts'
import { PATIENCE_MS } from '../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-people-'))
const dataDir = join(folder, 'data')
const path = join(dataDir, 'sluice.db')

afterAll(() => rmSync(folder, { recursive: true }))

const sluice = (args: string, stdin?: string) =>
  stdin === undefined ? runInProcess(args.split(' '), { dataDir }) : runCommand(args.split(' '), { dataDir, stdin })
const read = <T>(run: (sqlite: Database) => T): T => {
  const sqlite = new Database(path, { readonly: true })
  try {
    return run(sqlite)
  } finally {
    sqlite.close()
  }
}
const userRow = async (username: string, at = path) => {
  const { sqlite, db } = openDatabase(at)
  const row = (await db.select().from(users).all()).find((one) => one.username === username)
  sqlite.close()
  return row
}
const lastEvent = () =>
  read((sqlite) => sqlite.query('SELECT event, actor, method, details FROM audit_logs ORDER BY id DESC').get())

describe('alone', () => {
  test('the token is created, shown once, stored hashed, and replaced', async () => {
    await createDatabase(dataDir)
    expect((await sluice('bootstrap-token')).stdout).toContain('There is no bootstrap token')
    const first = await sluice('bootstrap-token --rotate')
    expect(first.stdout).toMatch(/^[\w-]{43}\n$/)
    expect(lastEvent()).toMatchObject({ event: 'bootstrap_token_rotated', actor: 'cli' })
    const second = await sluice('bootstrap-token --rotate')
    expect(second.stdout).not.toBe(first.stdout)
    expect((await sluice('bootstrap-token')).stdout).toContain('There is a bootstrap token')
    const facts = read((sqlite) => JSON.stringify(sqlite.query('SELECT * FROM facts').all()))
    expect(facts).not.toContain(second.stdout.trim())
  })

  test('none is created where it could not be used', async () => {
    for (const mode of ['trusted_header', 'disabled']) {
      const env = { CODEX_LB_DASHBOARD_AUTH_MODE: mode, CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true' }
      const refused = await runInProcess(['bootstrap-token', '--rotate'], { dataDir, env })
      expect([mode, refused.exitCode, refused.stdout]).toEqual([mode, 1, ''])
      expect(refused.stderr).toContain(`SLUICE_DASHBOARD_AUTH_MODE=${mode}`)
      expect((await runInProcess(['bootstrap-token'], { dataDir, env })).stdout).toContain('no bootstrap token is used')
    }
  })

  test('the first administrator gets a password from standard input and the ownerless keys, and ends the token', async () => {
    await sluice('keys create --name laptop')
    const made = await sluice('user create-admin Admin', 'a long password\nrest\n')
    expect([made.exitCode, made.stderr]).toEqual([0, ''])
    expect(made.stdout).toBe('Created the administrator "admin".\n')
    const row = await userRow('admin')
    expect(row).toMatchObject({ status: 'active', roleId: 'role_admin' })
    expect(await (await createPasswords()).verify('a long password', row?.passwordHash ?? null)).toBe(true)
    expect(read((sqlite) => sqlite.query('SELECT owner_user_id AS owner FROM api_keys').all())).toEqual([
      { owner: row?.id },
    ])
    expect((await sluice('bootstrap-token')).stdout).toContain('no bootstrap token is needed')
    const refused = await sluice('bootstrap-token --rotate')
    expect([refused.exitCode, refused.stdout]).toEqual([1, ''])
  })

  test('a second one needs its own name; impossible values are rejected before any write', async () => {
    expect((await sluice('user create-admin anna', 'another password')).exitCode).toBe(0)
    expect((await sluice('user create-admin anna', 'another password')).stderr).toContain(
      'There is already a user "anna"',
    )
    expect((await sluice('user create-admin bob', 'short')).stderr).toContain('at least 8 characters')
    expect((await sluice('user create-admin bob', '')).stderr).toContain('at least 8 characters')
    expect((await sluice('user create-admin a/b', 'a long password')).exitCode).toBe(2)
    expect((await sluice('user create-admin')).exitCode).toBe(2)
    const listed = JSON.parse((await sluice('user list --json')).stdout) as { username: string }[] // as: its own format
    expect(listed.map(({ username }) => username)).toEqual(['admin', 'anna'])
  })

  test('users are listed for people and for programs, without secrets', async () => {
    const { stdout } = await sluice('user list')
    expect(stdout.split('\n')[0]).toMatch(/^NAME +ROLE +STATUS +PASSWORD +TWO-FACTOR +LAST SIGN-IN +ID$/)
    expect(stdout.split('\n')[2]).toMatch(/^anna +Admin +active +yes +no +- +usr_\w+$/)
    expect((await sluice('user list --json')).stdout).not.toContain('argon2')
  })

  test('a second factor is removed; if there is none, the command says so', async () => {
    const { sqlite } = openDatabase(path)
    sqlite.run("UPDATE users SET totp_secret_sealed = 'sealed', totp_last_step = 5 WHERE username = 'anna'")
    sqlite.run("UPDATE users SET email = 'anna@example.test' WHERE username = 'anna'")
    sqlite.close()
    expect((await sluice('user list')).stdout).toMatch(/^anna +Admin +active +yes +yes +- +usr_/m)
    expect((await sluice('user reset-totp Anna@example.test')).exitCode).toBe(0)
    expect(await userRow('anna')).toMatchObject({ totpSecretSealed: null, totpLastStep: null })
    expect(lastEvent()).toMatchObject({ event: 'user_totp_reset', actor: 'cli', method: 'cli' })
    const again = await sluice('user reset-totp anna')
    expect([again.exitCode, again.stderr]).toEqual([1, 'sluice: "anna" has no two-factor authentication.\n'])
    expect((await sluice('user reset-totp nobody')).stderr).toContain(
      'There is no user "nobody". "sluice user list" shows them all.',
    )
  })

  test('a new password for a disabled user does not give access yet, and the command says so', async () => {
    await sluice('user create-admin dora', 'a long password')
    const { sqlite } = openDatabase(path)
    sqlite.run("UPDATE users SET status = 'disabled' WHERE username = 'dora'")
    sqlite.close()
    const { exitCode, stderr } = await sluice('user reset-password dora', 'another password')
    expect([exitCode, stderr]).toEqual([0, 'This user is disabled and cannot sign in until enabled.\n'])
  })

  test('a token in the environment takes precedence at the next start, and the command says so', async () => {
    const env = { CODEX_LB_DASHBOARD_BOOTSTRAP_TOKEN: 'a-token-of-the-environment-that-is-long-enough' }
    const { stderr } = await runInProcess(['bootstrap-token', '--rotate'], { dataDir: join(folder, 'other'), env })
    expect(stderr).toContain('The next start replaces it with SLUICE_DASHBOARD_BOOTSTRAP_TOKEN.')
  })

  test('the audit log reports what was purged, and what was written before there were hashes', async () => {
    const dataDir = join(folder, 'purged')
    await createDatabase(dataDir)
    const { sqlite, db } = openDatabase(join(dataDir, 'sluice.db'))
    for (const at of [1, 2])
      sqlite.run(`INSERT INTO audit_logs (at, event, actor, severity) VALUES (${at}, 'x', 'cli', 'info')`)
    const verified = async () => (await runInProcess(['audit', 'verify'], { dataDir })).stdout
    expect(await verified()).toBe('Verified: 2 entries, unbroken chain, 2 written by a release without hashes\n')
    await commit(db, (tx) => purgeAuditLog(tx, { before: 3, limit: 9, now: 3 }))
    sqlite.close()
    expect(await verified()).toBe('Verified: 1 entry, unbroken chain, deleted up to entry 2\n')
  })
})

describe('at a terminal', () => {
  const atTerminal = join(folder, 'terminal')
  /** Sends all `keys` together at the first prompt. Returns what the terminal showed. */
  const type = async (username: string, keys: string) => {
    let shown = ''
    const child = Bun.spawn([...PROGRAM, 'user', 'create-admin', username], {
      env: { PATH: process.env.PATH ?? '', HOME: folder, CODEX_LB_DATA_DIR: atTerminal },
      timeout: PATIENCE_MS,
      killSignal: 'SIGKILL',
      terminal: {
        data: (terminal, bytes) => {
          const isFirst = !shown.includes('New password: ')
          shown += Buffer.from(bytes).toString()
          if (isFirst && shown.includes('New password: ')) terminal.write(keys)
        },
      },
    })
    const exitCode = await child.exited
    child.terminal?.close()
    return { exitCode, shown }
  }

  test.each([
    ['anna', 'both lines at once', 'a long password\ra long password\r'],
    ['bert', 'Ctrl-U begins anew', 'mistyped\x15a long password\ra long password\r'],
    ['cleo', 'Ctrl-W takes the word before', 'a long word\x17password\ra long password\r'],
    ['dora', 'keys that write nothing', '\x1b[Aa long\x1b[15~ \x1b[C\x1bOPpassword\r\x1b[Aa long password\r'],
    ['emil', 'a paste in brackets', '\x1b[200~a long password\x1b[201~\ra long password\x7fd\r'],
  ])('%s: %s', async (username, _, keys) => {
    const { exitCode, shown } = await type(username, keys)
    expect([exitCode, shown]).toEqual([0, expect.stringContaining('Created the administrator')])
    const { passwordHash = null } = (await userRow(username, join(atTerminal, 'sluice.db'))) ?? {}
    expect(await (await createPasswords()).verify('a long password', passwordHash)).toBe(true)
    expect(shown).not.toContain('long')
  })

  test.each([
    ['Ctrl-C', 'a long\x03', 'Nothing was changed.'],
    ['Ctrl-D', '\x04', 'Nothing was changed.'],
    ['another second line', 'a long password\rb long password\r', 'The passwords do not match.'],
    ['the first line again by an arrow', 'a long password\r\x1b[A\r', 'The passwords do not match.'],
  ])('%s changes nothing', async (_, keys, says) => {
    const { exitCode, shown } = await type('zoe', keys)
    expect([exitCode, shown]).toEqual([1, expect.stringContaining(says)])
  })
})

describe('beside a running server', () => {
  let server: RunningServer

  beforeAll(async () => {
    server = await spawnServer({ dataDir })
  })

  afterAll(() => server[Symbol.asyncDispose]())

  const signIn = async (password: string) => {
    const response = await fetch(`${server.url}/api/dashboard-auth/password/login`, {
      method: 'POST',
      body: JSON.stringify({ username: 'anna', password }),
      headers: { 'content-type': 'application/json' },
    })
    return { status: response.status, cookie: response.headers.get('set-cookie')?.split(';')[0] ?? '' }
  }
  const statusWith = async (cookie: string) =>
    (await fetch(`${server.url}/api/dashboard-auth/sessions`, { headers: { cookie } })).status

  test('a new password signs in, the old one does not, and existing sessions end', async () => {
    const { status, cookie } = await signIn('another password')
    expect([status, await statusWith(cookie)]).toEqual([200, 200])
    const reset = await sluice('user reset-password anna', 'a third password\n')
    expect([reset.exitCode, reset.stdout]).toEqual([
      0,
      'Set a new password for "anna" and signed them out everywhere.\n',
    ])
    expect(await statusWith(cookie)).toBe(401)
    expect((await signIn('another password')).status).toBe(401)
    expect((await signIn('a third password')).status).toBe(200)
    expect(lastEvent()).toMatchObject({ event: 'login_success' })
    expect((await sluice('user list')).stdout).toMatch(/^anna .* \d{4}-\d\d-\d\d \d\d:\d\d +usr_/m)
  })

  test('entries written here are in the log of the server', async () => {
    const { cookie } = await signIn('a third password')
    const answer = await fetch(`${server.url}/api/audit-logs?actor_user_id=cli&limit=1`, { headers: { cookie } })
    expect(await answer.json()).toMatchObject({ items: [{ action: 'password_set', target: { type: 'user' } }] })
  })

  test('sessions are revoked', async () => {
    const { cookie } = await signIn('a third password')
    const revoked = await sluice('user revoke-sessions anna')
    expect(revoked.stdout).toBe('Signed "anna" out of 3 browsers.\n')
    expect(await statusWith(cookie)).toBe(401)
  })

  test('the audit log is verified, contains no password, and a modified row is named', async () => {
    const whole = await sluice('audit verify')
    expect([whole.exitCode, whole.stderr]).toEqual([0, ''])
    expect(whole.stdout).toMatch(/^Verified: \d+ entries, unbroken chain\n$/)
    expect(JSON.parse((await sluice('audit verify --json')).stdout)).toMatchObject({ isWhole: true, unchained: 0 })
    for (const password of ['another password', 'a third password', 'a long password'])
      expect(read((sqlite) => JSON.stringify(sqlite.query('SELECT * FROM audit_logs').all()))).not.toContain(password)
    const { sqlite } = openDatabase(path)
    sqlite.run("UPDATE audit_logs SET actor = 'usr_x' WHERE id = 4")
    sqlite.close()
    const broken = await sluice('audit verify')
    expect([broken.exitCode, broken.stdout]).toEqual([1, 'Broken at entry 4: its content was changed.\n'])
  })
})
