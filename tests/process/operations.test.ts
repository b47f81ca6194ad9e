/** Backups, restoring, the doctor and the service unit as commands, beside a running and a stopped server. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import type { Finding } from '../../src/ops/checks.ts'
import { createDatabase, runInProcess } from '../support/cli.ts'
import { freePort } from '../support/free-port.ts'
import { FROM_SOURCE, runCommand, spawnServer, untilGreeted } from '../support/spawn.ts'
import { until } from '../support/until.ts'
import { createUpstream } from '../support/upstream/app.ts'

let root: string
let dataDir: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sluice-operations-'))
  dataDir = join(root, 'data')
})
afterEach(() => rmSync(root, { recursive: true }))

const nowhere = 'http://127.0.0.1:1'
const alone = { CODEX_LB_UPSTREAM_BASE_URL: nowhere, CODEX_LB_AUTH_BASE_URL: nowhere }
const sluice = (args: string[], env: Record<string, string> = alone) => runInProcess(args, { dataDir, env })
/** For what depends on how the program was started, or on how its failures are explained. */
const spawned = (args: string[], env: Record<string, string> = alone) => runCommand(args, { dataDir, env })

const keyNames = async (url: string): Promise<string[]> => {
  const keys = (await (await fetch(`${url}/api/api-keys`)).json()) as { name: string }[]
  return keys.map(({ name }) => name)
}

test('a backup of a running server is verified, rejected while it runs, and restored afterwards', async () => {
  const backup = join(root, 'copy.db')
  {
    await using server = await spawnServer({ dataDir, env: alone })
    await sluice(['keys', 'create', '--name', 'before'])
    const made = await sluice(['backup', '--out', backup])
    expect([made.exitCode, made.stdout]).toEqual([0, `${backup}\n`])
    expect(made.stderr).toContain('encryption.key')
    expect(statSync(backup).mode & 0o777).toBe(0o600)
    await sluice(['keys', 'create', '--name', 'after'])

    const verified = await sluice(['backup', 'verify', backup])
    expect(verified.exitCode).toBe(0)
    expect(verified.stdout).toStartWith('OK: this backup can be restored.\nContents: 0 accounts, 1 key, 0 requests.\n')
    const refused = await sluice(['restore', backup])
    expect([refused.exitCode, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toContain(`Another server (process ${server.pid})`)
    expect((await sluice(['backup', '--out', backup])).stderr).toContain('already exists')
    await server.stop()
  }
  const restored = await sluice(['restore', backup])
  expect([restored.exitCode, restored.stderr]).toEqual([0, ''])
  expect(restored.stdout).toStartWith(`Restored ${backup}: 0 accounts, 1 key, 0 requests.\n`)
  expect(readdirSync(dataDir).filter((name) => name.startsWith('before-restore-'))).toHaveLength(1)
  await using server = await spawnServer({ dataDir, env: alone })
  expect(await keyNames(server.url)).toEqual(['before'])
}, 120_000)

test('a restore lists revoked access that works again', async () => {
  const backup = join(root, 'copy.db')
  const withPassword = (args: string[], stdin: string) => runCommand(args, { dataDir, env: alone, stdin })
  await sluice(['keys', 'create', '--name', 'laptop'])
  await withPassword(['user', 'create-admin', 'ada'], 'a long password')
  await withPassword(['user', 'create-admin', 'eve'], 'a long password')
  await sluice(['settings', 'set', 'guestAccessEnabled=true'])
  await sluice(['backup', '--out', backup])
  await sluice(['keys', 'revoke', 'laptop'])
  await withPassword(['user', 'reset-password', 'ada'], 'another password')
  await sluice(['settings', 'set', 'guestAccessEnabled=false'])
  const { sqlite } = openDatabase(join(dataDir, 'sluice.db'))
  sqlite.run("UPDATE users SET status = 'disabled' WHERE username = 'eve'")
  sqlite.close()
  const { stdout } = await sluice(['restore', backup])
  for (const said of [
    'Keys revoked since the backup work again. Revoke them: "laptop".',
    'Users disabled since the backup can sign in again. Disable them: "eve".',
    'Passwords changed since the backup are the old ones again. Change them: "ada".',
    'Guest access is on again. See Settings → Access & keys.',
  ])
    expect(stdout).toContain(`${said}\n`)
  expect(stdout).not.toContain('Passkeys')
  const [aside = ''] = readdirSync(dataDir).filter((name) => name.startsWith('before-restore-'))
  expect(stdout).toContain(`The previous database is in ${join(dataDir, aside)}. Delete it once everything works.\n`)
}, 120_000)

test('a backup that cannot be restored gives the reason', async () => {
  const backup = join(root, 'copy.db')
  expect((await sluice(['backup', '--with-key'])).stderr).toContain('There is no encryption key at')
  await sluice(['settings', 'set', 'routingStrategy=fill_first'])
  await sluice(['backup', '--out', backup])
  writeFileSync(join(dataDir, 'encryption.key'), `${Buffer.alloc(32, 1).toString('base64url')}\n`)
  const { sqlite } = openDatabase(backup)
  sqlite.run("INSERT INTO migrations VALUES ('9999_x', 'hash', 0)")
  sqlite.run("UPDATE audit_logs SET actor = 'usr_x'")
  sqlite.run('PRAGMA journal_mode = DELETE')
  sqlite.close()
  const { exitCode, stdout } = await sluice(['backup', 'verify', backup])
  expect([exitCode, stdout.trim().split('\n')]).toEqual([
    1,
    [
      'This backup cannot be restored.',
      'Contents: 0 accounts, 0 keys, 0 requests.',
      'File: intact.',
      'Schema: a newer release; update Sluice first.',
      'Encryption key: does not match; this backup needs another key.',
      'Audit log: broken: its content was changed.',
    ],
  ])
}, 120_000)

test('a restore onto the database of another installation does not mention revoked access', async () => {
  const backup = join(root, 'copy.db')
  await sluice(['keys', 'create', '--name', 'theirs'])
  const made = await sluice(['backup', '--with-key', '--out', backup])
  expect(made.stderr).toContain(`The encryption key is next to it: ${backup}.`)
  rmSync(dataDir, { recursive: true })
  expect((await sluice(['backup', 'verify', backup])).stdout).toContain('Encryption key: matches.')
  await sluice(['keys', 'create', '--name', 'ours'])
  const { stdout } = await sluice(['restore', backup])
  expect(stdout).toContain('\nThe backup is from another installation: its keys, users and settings replace ')
  expect(stdout).not.toContain('revoke')
}, 120_000)

const openPage = async (url: string) => {
  const answer = await fetch(url, { headers: { accept: 'text/html' } })
  return { status: answer.status, text: await answer.text() }
}

/**
 * Until the pages were read: the thread that reads opens the file by its name. A server stops a read after 2 s, and the
 * first ones can take longer on a busy machine.
 */
const readPages = async (url: string) => {
  for (const path of ['/dashboard', '/settings/data'])
    await until(async () => (await openPage(url + path)).status === 200)
}

describe('a data folder that is replaced by a file under the server', () => {
  const says = '/data is no longer a folder'
  const backUp = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }

  test.each([
    ['the folder is back', () => renameSync(join(root, 'moved'), dataDir), false],
    ['the file is deleted', () => {}, true],
  ])('is reported as a lost database, until %s and a backup can be created', async (_, mend, isLost) => {
    await using server = await spawnServer({ dataDir, env: alone })
    const { url } = server
    const overview = async () => {
      const { status, text } = await openPage(`${url}/dashboard`)
      return [status, text.includes('The database file was removed or replaced')]
    }
    await readPages(url)
    renameSync(dataDir, join(root, 'moved'))
    writeFileSync(dataDir, '')
    const { findings } = (await (await fetch(`${url}/api/doctor`)).json()) as { findings: Finding[] }
    const told = { verdict: 'problem', says: expect.stringContaining(says) }
    expect(findings.find(({ id }) => id === 'database')).toMatchObject(told)
    expect(await overview()).toEqual([200, true])
    const page = await openPage(`${url}/settings/data`)
    expect(page).toEqual({ status: 503, text: expect.stringContaining(says) })
    for (const init of [backUp, {}]) {
      const refused = await fetch(`${url}/api/backups`, init)
      const error = { code: 'database_unavailable', message: expect.stringContaining(says) }
      expect([refused.status, await refused.json()]).toEqual([503, { error }])
    }
    rmSync(dataDir)
    mend()
    expect((await openPage(`${url}/settings/data`)).status).toBe(200)
    expect((await fetch(`${url}/api/backups`, backUp)).status).toBe(201)
    expect(await overview()).toEqual([200, isLost])
  })
})

test.each([
  ['removed', (path: string) => rmSync(path)],
  ['replaced', (path: string) => renameSync(join(root, 'other.db'), path)],
  ['moved away', (path: string) => renameSync(path, join(root, 'moved.db'))],
  [
    'moved away and replaced by a copy',
    (path: string) => {
      renameSync(path, join(root, 'moved.db'))
      copyFileSync(join(root, 'moved.db'), path)
    },
  ],
])(
  'a database file that is %s under the server is a problem, and a backup saves its content',
  async (_, lose) => {
    writeFileSync(join(root, 'other.db'), 'another file')
    const post = { method: 'POST', headers: { 'content-type': 'application/json' } }
    let name = ''
    {
      await using server = await spawnServer({ dataDir, env: alone })
      const { url } = server
      const create = (key: string) => fetch(`${url}/api/api-keys/`, { ...post, body: JSON.stringify({ name: key }) })
      const found = async () => {
        const { findings } = (await (await fetch(`${url}/api/doctor`)).json()) as { findings: Finding[] }
        return findings.find(({ id }) => id === 'database')
      }
      await create('before')
      await readPages(url)
      lose(join(dataDir, 'sluice.db'))
      await create('after')
      expect(await found()).toMatchObject({ verdict: 'problem', advice: expect.stringContaining('sluice restore') })
      expect((await openPage(`${url}/dashboard`)).text).toContain('The database file was removed or replaced')
      expect((await fetch(`${url}/health/ready`)).status).toBe(200)
      expect((await openPage(`${url}/settings/data`)).status).toBe(200)
      const made = await fetch(`${url}/api/backups`, { ...post, body: '{}' })
      expect(made.status).toBe(201)
      name = ((await made.json()) as { name: string }).name
      expect(statSync(join(dataDir, 'backups', name)).mode & 0o777).toBe(0o600)
      await server.stop()
    }
    expect((await sluice(['restore', join(dataDir, 'backups', name)])).exitCode).toBe(0)
    const keys = JSON.parse((await sluice(['keys', 'list', '--json'])).stdout) as { name: string }[] // as: its own format
    expect(keys.map((key) => key.name).toSorted()).toEqual(['after', 'before'])
  },
  120_000,
)

test('pages that read from a deleted database file say so, with advice', async () => {
  await using server = await spawnServer({ dataDir, env: alone })
  rmSync(join(dataDir, 'sluice.db'))
  for (const path of ['/dashboard', '/logs']) {
    const { status, text } = await openPage(server.url + path)
    expect([path, status]).toEqual([path, 503])
    expect(text).toMatch(/was deleted or replaced while the server was using it.*Create a backup/s)
  }
})

test('without --out it goes into the folder; the page creates one in its own process; metrics include it', async () => {
  await using server = await spawnServer({ dataDir, env: alone })
  const made = await sluice(['backup', '--json', '--with-key'])
  const { file, keyFile } = JSON.parse(made.stdout)
  expect(file).toStartWith(join(dataDir, 'backups', 'sluice-'))
  expect(existsSync(keyFile)).toBe(true)
  expect(statSync(join(dataDir, 'backups')).mode & 0o777).toBe(0o700)

  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
  expect((await fetch(`${server.url}/api/backups`, init)).status).toBe(503) // one was just created
  for (const path of [file, keyFile]) rmSync(path)
  const answer = await fetch(`${server.url}/api/backups`, init)
  expect(answer.status).toBe(201)
  const { name } = (await answer.json()) as { name: string }
  expect((await sluice(['backup', 'verify', join(dataDir, 'backups', name)])).exitCode).toBe(0)
  const metrics = await (await fetch(`${server.url}/metrics`)).text()
  expect(metrics).toMatch(/^sluice_last_backup_timestamp_seconds \d{10}$/m)
}, 120_000)

test('a socket through the page’s test route works and is counted while it is open', async () => {
  await using server = await spawnServer({ dataDir, env: alone })
  const ws = new WebSocket(`${server.url.replace('http', 'ws')}/doctor/socket`)
  const { promise, resolve } = Promise.withResolvers<unknown>()
  ws.onopen = async () => {
    const metrics = await (await fetch(`${server.url}/metrics`)).text()
    expect(metrics).toContain('\nsluice_client_sockets 1\n')
    ws.send('ping')
  }
  ws.onmessage = ({ data }) => resolve(data)
  ws.onclose = () => resolve('closed')
  expect(await promise).toBe('ping')
}, 120_000)

test('the doctor detects an unreachable upstream, and accepts a reachable one', async () => {
  const upstream = createUpstream()
  const listening = upstream.listen()
  const env = {
    CODEX_LB_UPSTREAM_BASE_URL: `${listening.url}/backend-api`,
    CODEX_LB_AUTH_BASE_URL: listening.url,
  }
  await createDatabase(dataDir)
  await sluice(['backup'])
  const found = await sluice(['doctor', '--json'], env)
  const report = JSON.parse(found.stdout) as { verdict: string; findings: { id: string; verdict: string }[] }
  expect(Object.fromEntries(report.findings.map(({ id, verdict }) => [id, verdict]))).toMatchObject({
    data_folder: 'ok',
    database: 'ok',
    key_file: 'ok',
    backup: 'ok',
    upstream_http: 'ok',
    clock: 'ok',
  })
  expect(found.exitCode).toBe(0)
  await listening.stop()

  const broken = await sluice(['doctor'])
  expect(broken.exitCode).toBe(1)
  expect(broken.stdout).toContain('Problem  ChatGPT over HTTP: Can’t reach 127.0.0.1:1')
  expect(broken.stdout).toMatch(/^ {9}-> \w/m)
  expect(broken.stdout).not.toContain('-> null')
}, 120_000)

test('the doctor checks this folder and its configuration', async () => {
  const examine = async () => {
    const { at, findings } = JSON.parse((await sluice(['doctor', '--json'])).stdout) as {
      at: string
      findings: Finding[]
    }
    expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(20_000)
    expect(at).toEndWith('Z')
    return Object.fromEntries(findings.map(({ id, verdict, says }) => [id, `${verdict}: ${says}`]))
  }
  mkdirSync(dataDir, { mode: 0o700 })
  expect((await examine()).database).toBe('unknown: It doesn’t exist yet. It is created on first start.')
  await sluice(['settings', 'set', 'backupIntervalHours=0'])
  expect((await examine()).backup).toBe('warning: There are no backups, and scheduled backups are off.')
  writeFileSync(join(dataDir, 'encryption.key'), `${Buffer.alloc(32, 1).toString('base64url')}\n`)
  expect((await examine()).key_file).toStartWith('problem: ')
}, 120_000)

describe('a database that stops the start', () => {
  const path = () => join(dataDir, 'sluice.db')
  const overwrite = (from: number, bytes: Uint8Array) => {
    const present = readFileSync(path())
    writeFileSync(path(), Buffer.concat([present.subarray(0, from), bytes, present.subarray(from + bytes.length)]))
  }
  const damages = {
    'is noise': () => writeFileSync(path(), Buffer.alloc(4096, 'noise')),
    'has bad pages': () => overwrite(2 * 4096, Buffer.alloc(5 * 4096, 0xff)),
    'is newer': () => {
      const { sqlite } = openDatabase(path())
      sqlite.run("INSERT INTO migrations VALUES ('9999_x', 'hash', 0)")
      sqlite.close()
    },
  }

  test.each([
    ['is noise', 'is damaged: file is not a database.', 'sluice restore FILE', 'unknown'],
    ['has bad pages', 'is damaged: ', 'sluice restore FILE', 'ok'],
    ['is newer', 'newer version (it has 9999_x)', 'pdate Sluice', 'ok'],
  ] as const)(
    '%s: the doctor detects it, and both give advice',
    async (kind, says, todo, key) => {
      await createDatabase(dataDir)
      const { sqlite } = openDatabase(path())
      sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
      sqlite.close()
      damages[kind]()

      const { findings } = JSON.parse((await sluice(['doctor', '--json'])).stdout) as { findings: Finding[] }
      const found = Object.fromEntries(findings.map((finding) => [finding.id, finding]))
      expect(found.database?.says).not.toContain('***')
      expect(found.database).toMatchObject({
        verdict: 'problem',
        says: expect.stringContaining(says),
        advice: expect.stringContaining(todo),
      })
      expect(found.key_file?.verdict).toBe(key)

      for (const args of [['serve'], ['accounts', 'list']]) {
        const { exitCode, stderr } = await spawned(args, { ...alone, PORT: String(freePort()) })
        expect(exitCode).toBe(1)
        expect(stderr).toContain(says)
        expect(stderr).toContain(todo)
      }
    },
    120_000,
  )

  test('a folder at the place of the database is named by every command', async () => {
    mkdirSync(path(), { recursive: true })
    const { exitCode, stderr } = await sluice(['keys', 'list'])
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`sluice: ${path()} cannot be opened for writing: EISDIR`)
  })
})

test('the doctor creates nothing', async () => {
  const { exitCode } = await sluice(['doctor'])
  expect(exitCode).toBe(1)
  expect(existsSync(dataDir)).toBe(false)
})

test('the unit runs this program on this folder', async () => {
  const { exitCode, stdout } = await spawned(['service', 'print'], { ...alone, PORT: '4000' })
  expect(exitCode).toBe(0)
  expect(stdout).toContain(`Environment=SLUICE_DATA_DIR=${dataDir}\n`)
  expect(stdout).toContain('Environment=PORT=4000\n')
  expect(stdout).toMatch(/^ExecStart=\/.* serve$/m)
  expect(stdout).toMatch(/^ExecReload=\/.* reload$/m)
  expect(stdout).toContain('Type=notify\n')
  expect(stdout).toContain('TimeoutStopSec=45\n')
  const plist = await runCommand(['service', 'print', '--launchd'], { dataDir, env: alone, command: FROM_SOURCE })
  expect(plist.stdout).toContain('<string>serve</string>')
  expect(plist.stdout).toMatch(/<key>WorkingDirectory<\/key>\n {2}<string>\/.*<\/string>/)
  expect(existsSync(dataDir)).toBe(false)
})

test('the unit includes the configuration of this program, and no secret', async () => {
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, '.env'), 'CODEX_LB_LOG_FORMAT=json\n')
  const { stdout } = await spawned(['service', 'print'], {
    ...alone,
    CODEX_LB_PUBLIC_URL: 'https://sluice.example',
    CODEX_LB_METRICS_TOKEN: 'a-token-nobody-may-read',
    CODEX_LB_ENCRYPTION_KEY_FILE: 'keys/one.key',
    https_proxy: 'http://anna:hunter2@proxy.example:3128',
    NO_PROXY: '127.0.0.1',
  })
  expect(stdout).toContain('Environment=SLUICE_PUBLIC_URL=https://sluice.example\n')
  expect(stdout).toContain(`Environment=SLUICE_UPSTREAM_BASE_URL=${nowhere}\n`)
  expect(stdout).toMatch(/^Environment=SLUICE_ENCRYPTION_KEY_FILE=\/.*keys\/one.key$/m)
  expect(stdout).toContain('Environment=NO_PROXY=127.0.0.1\n')
  expect(stdout).toMatch(/^# Secrets are left out: SLUICE_METRICS_TOKEN, https_proxy\. .*\/\.env/m)
  expect(stdout).not.toMatch(/nobody-may-read|hunter2|LOG_FORMAT/)
})

test('a folder is escaped for systemd and XML, whatever its name', async () => {
  const env = { ...alone, CODEX_LB_DATA_DIR: `${root}/a b%"&<c` }
  const { stdout: unit } = await spawned(['service', 'print'], env)
  expect(unit).toContain(`\nEnvironment="SLUICE_DATA_DIR=${root}/a b%%\\"&<c"\n`)
  expect(unit).toContain(`\nReadWritePaths="${root}/a b%%\\"&<c"\n`)
  const { stdout: plist } = await spawned(['service', 'print', '--launchd'], env)
  expect(plist).toContain(`<key>SLUICE_DATA_DIR</key>\n    <string>${root}/a b%"&amp;&lt;c</string>\n`)
})

describe('the user of a unit for a folder in a home', () => {
  const IN_HOME = { CODEX_LB_DATA_DIR: '/home/ada/sluice' }
  const printed = async (env: Record<string, string>) => (await spawned(['service', 'print'], env)).stdout

  test('comes from the system, whatever the environment variables', async () => {
    const name = Bun.spawnSync(['id', '-un']).stdout.toString().trim()
    const left: Record<string, string>[] = [{ LOGNAME: 'grace', USER: 'grace' }, { LOGNAME: '' }]
    for (const env of left) {
      const unit = await printed({ ...IN_HOME, ...env })
      expect(unit).toContain(`\nUser=${name}\n`)
      expect(unit).not.toContain('# The owner of')
    }
  })

  test('comes from the environment if the system does not know', async () => {
    const mute = { ...IN_HOME, PATH: '/nonexistent' }
    expect(await printed({ ...mute, LOGNAME: 'ada', USER: 'grace' })).toContain('\nUser=ada\n')
    expect(await printed({ ...mute, LOGNAME: 'a\nExecStartPre=/bin/false', USER: 'grace' })).toContain('\nUser=grace\n')
  })

  test('is a placeholder to check, with a warning, if unknown', async () => {
    const unit = await printed({ ...IN_HOME, PATH: '/nonexistent' })
    expect(unit).toContain('\nUser=sluice\n')
    expect(unit).toContain('# The owner of /home/ada/sluice could not be determined: set User= to it.\n')
    expect(unit).toContain('\nProtectHome=false\n')
  })
})

test('the unit starts a server from the folder it names', async () => {
  const printed = await spawned(['service', 'print'], { ...alone, CODEX_LB_PUBLIC_URL: 'https://sluice.example' })
  const unit = getLines(printed.stdout)
  const [command = '', folder = '/'] = [unit('ExecStart')[0], unit('WorkingDirectory')[0]]
  const { PORT, ...env } = Object.fromEntries(unit('Environment').map((line) => line.split(/=(.*)/s)))
  expect(PORT).toBe('2455')
  await using server = await spawnServer({ dataDir, cwd: folder, command: command.split(' ').slice(0, -1), env })
  expect((await openPage(`${server.url}/dashboard`)).status).toBe(200)
})

const getLines = (unit: string) => (name: string) =>
  unit.split('\n').flatMap((line) => (line.startsWith(`${name}=`) ? [line.slice(name.length + 1)] : []))

describe('a server on all addresses', () => {
  const hasIpv6 = Object.values(networkInterfaces())
    .flat()
    .some((one) => one?.family === 'IPv6')

  test.each(['0.0.0.0', ...(hasIpv6 ? ['::', '[::]'] : [])])(
    '%s: is healthy, and names a page that opens',
    async (HOST) => {
      await using server = await spawnServer({ dataDir, env: { ...alone, HOST } })
      expect(await runCommand(['healthcheck'], { env: server.env })).toMatchObject({ exitCode: 0, stderr: '' })
      await untilGreeted(server)
      const [, dashboard = ''] = /^Dashboard: (\S+)$/m.exec(server.output()) ?? []
      expect((await openPage(dashboard)).status).toBe(200)
    },
    120_000,
  )
})

describe('when the server cannot listen', () => {
  const serve = async (HOST: string, port: number) =>
    (await spawned(['serve'], { ...alone, HOST, PORT: String(port) })).stderr

  test('a port used by another program or another Sluice is named, and not shared', async () => {
    using other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
    await using sluice = await spawnServer()
    for (const port of [other.port ?? 0, sluice.port])
      expect(await serve('127.0.0.1', port)).toContain(
        `sluice: Cannot listen on 127.0.0.1 port ${port}: it is in use. Stop`,
      )
  }, 120_000)

  test('an unknown host name is not reported as a used port', async () => {
    const port = freePort()
    const said = await serve('nosuch.invalid', port)
    expect(said).toContain(`sluice: Cannot listen on nosuch.invalid port ${port}: `)
    expect(said).toContain('Set HOST or PORT.')
  }, 120_000)

  test('nor is an address of another machine', async () => {
    const port = freePort()
    const said = await serve('203.0.113.7', port)
    expect(said).toContain(`sluice: Cannot listen on 203.0.113.7 port ${port}: EADDRNOTAVAIL`)
    expect(said).toContain('Set HOST to an address of this machine')
  }, 120_000)
})
