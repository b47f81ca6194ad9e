/** The command line on a data folder, alone and beside a server: as a process if that matters, otherwise in process. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase, runInProcess } from '../support/cli.ts'
import { PROGRAM, runCommand, spawnServer } from '../support/spawn.ts'
import { createUpstream } from '../support/upstream/app.ts'
import { getZip } from '../support/zip.ts'
import { untilListed } from './world.ts'

let folder: string
let dataDir: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-cli-'))
  dataDir = join(folder, 'data')
})

afterEach(() => rmSync(folder, { recursive: true }))

const sluice = (...args: string[]) => runInProcess(args, { dataDir })
const spawned = (...args: string[]) => runCommand(args, { dataDir })
const json = async (...args: string[]) => JSON.parse((await sluice(...args, '--json')).stdout)

const authFile = (name: string, email: string): string => {
  const path = join(folder, name)
  writeFileSync(path, createUpstream().addAccount({ email, plan: 'pro' }).authJson())
  return path
}

describe('accounts', () => {
  test('are imported, an invalid file is named, the valid one kept', async () => {
    const bad = join(folder, 'bad.json')
    writeFileSync(bad, '{"OPENAI_API_KEY":"sk-secret"}')
    const result = await spawned(
      'accounts',
      'import',
      authFile('a.json', 'ada@example.test'),
      bad,
      join(folder, 'none'),
    )
    expect(result.exitCode).toBe(1)
    expect(result.stdout).toBe('Imported ada@example.test (pro).\n')
    expect(result.stderr).toContain(`${bad} is from the Codex CLI signed in with an API key`)
    expect(result.stderr).toContain('none: cannot be read (ENOENT)')
    expect(result.stderr).not.toContain('sk-secret')
    expect(statSync(dataDir).mode & 0o777).toBe(0o700)
    for (const name of readdirSync(dataDir)) expect(statSync(join(dataDir, name)).mode & 0o077).toBe(0)
    expect(existsSync(join(dataDir, 'sluice.lock'))).toBe(false)
  })

  test('are imported from a file that begins with a byte order mark', async () => {
    const file = authFile('a.json', 'ada@example.test')
    writeFileSync(file, `\uFEFF${readFileSync(file, 'utf8').replaceAll('\n', '\r\n')}`)
    expect((await sluice('accounts', 'import', file)).stdout).toStartWith('Imported ada@example.test')
  })

  test('are imported from UTF-16, which PowerShell writes', async () => {
    const json = readFileSync(authFile('a.json', 'ada@example.test'), 'utf8')
    const file = join(folder, 'utf16.json')
    writeFileSync(file, `\uFEFF${json}`, 'utf16le')
    expect((await sluice('accounts', 'import', file)).stdout).toStartWith('Imported ada@example.test')
  })

  test('are imported from a ZIP, as on the page', async () => {
    const packed = ['ada', 'eve'].map((name) => ({
      name: `${name}/auth.json`,
      text: readFileSync(authFile('a.json', `${name}@example.test`)),
    }))
    const [pool, cut] = [join(folder, 'pool.zip'), join(folder, 'cut.zip')]
    writeFileSync(pool, getZip([...packed, { name: 'bad.json', text: 'x' }, { name: 'notes.txt', text: 'y' }]))
    writeFileSync(cut, readFileSync(pool).subarray(0, 99))
    await createDatabase(dataDir)
    const result = await sluice('accounts', 'import', pool, cut)
    expect(result.exitCode).toBe(1)
    expect(result.stdout).toMatch(/^Imported ada@example\.test .*\nImported eve@example\.test .*\n$/)
    expect(result.stderr).toBe(`sluice: ${cut} is not a complete ZIP archive.\nsluice: bad.json is not valid JSON.\n`)
  })

  test('imported again keep tokens unless the file is newer', async () => {
    const file = authFile('a.json', 'ada@example.test')
    await sluice('accounts', 'import', file)
    const again = await sluice('accounts', 'import', file)
    expect(again.exitCode).toBe(0)
    expect(again.stdout).toBe('Kept ada@example.test (pro): the stored tokens are as new as the ones in the file.\n')
    const { stdout } = await sluice('accounts', 'import', file, '--json')
    expect(JSON.parse(stdout)).toMatchObject({ accounts: [{ tokensKept: true, status: 'active' }], failures: [] })
    expect(stdout).not.toMatch(/sealed/i)
  })

  test('are paused by email, resumed by the start of the id, listed and removed', async () => {
    await sluice('accounts', 'import', authFile('a.json', 'ada@example.test'))
    expect((await sluice('accounts', 'pause', 'ADA@example.test')).stdout).toBe('Paused ada@example.test.\n')
    const [{ accountId, status }] = (await json('accounts', 'list')).accounts
    expect(status).toBe('paused')
    const again = await sluice('accounts', 'import', authFile('a.json', 'ada@example.test'))
    expect(again.stdout).toEndWith(' It is still paused.\n')
    expect((await sluice('accounts', 'resume', accountId.slice(0, 10))).exitCode).toBe(0)
    const { stdout } = await sluice('accounts', 'list')
    expect(stdout.split('\n')[0]).toMatch(/^ACCOUNT +PLAN +STATUS .* ID$/)
    expect(stdout.split('\n')[1]).toMatch(/^ada@example\.test +pro +active .* acc_\w+$/)
    expect((await sluice('accounts', 'remove', accountId)).exitCode).toBe(0)
    expect((await json('accounts', 'list')).accounts).toEqual([])
  })

  test('with newer tokens are updated, from standard input too', async () => {
    const account = createUpstream().addAccount({ email: 'ada@example.test', plan: 'pro' })
    const importing = () => runCommand(['accounts', 'import', '-'], { dataDir, stdin: account.authJson() })
    expect((await importing()).stdout).toBe('Imported ada@example.test (pro).\n')
    account.signInAgain()
    expect((await importing()).stdout).toBe('Updated ada@example.test (pro).\n')
  })

  test('are listed with the use of their known windows', async () => {
    await sluice('accounts', 'import', authFile('a.json', 'ada@example.test'), authFile('b.json', 'bob@example.test'))
    const window = { windowMinutes: 10_080, resetAt: Date.now() + 600_000 }
    const windows = { fiveHour: null, weekly: { ...window, usedPercent: 36.6 }, monthly: { ...window, usedPercent: 0 } }
    const db = new Database(join(dataDir, 'sluice.db'))
    db.run("INSERT INTO account_usage SELECT id, 1, ? FROM accounts WHERE email LIKE 'ada%'", [
      JSON.stringify({ windows }),
    ])
    db.close()
    const { stdout } = await sluice('accounts', 'list')
    expect(stdout).toMatch(/5H +WEEK +MONTH +ID\n.*\n/)
    expect(stdout).toMatch(/ada@example\.test +pro +active +- +- +37% +0% +acc_/m)
    expect(stdout).toMatch(/bob@example\.test +pro +active +- +- +- +- +acc_/m)
    const usedPercent = { fiveHour: null, weekly: 36.6, monthly: 0 }
    expect((await json('accounts', 'list')).accounts).toContainEqual(expect.objectContaining({ usedPercent }))
  })

  test('that are blocked are listed with its end, or with the next check if that is unknown', async () => {
    await sluice('accounts', 'import', authFile('a.json', 'ada@example.test'))
    const nextCheckAt = Date.now() + 600_000
    const db = new Database(join(dataDir, 'sluice.db'))
    db.run("UPDATE accounts SET status = 'rate_limited', cause = 'rate_limited', next_check_at = ?", [nextCheckAt])
    const time = new Date(nextCheckAt).toISOString()
    const [account] = (await json('accounts', 'list')).accounts
    expect(account).toMatchObject({ status: 'rate_limited', until: null, nextCheckAt: time })
    expect((await sluice('accounts', 'list')).stdout).toContain(
      `rate limited  check ${time.slice(0, 16).replace('T', ' ')}`,
    )
    db.run('UPDATE accounts SET until = next_check_at, next_check_at = NULL')
    db.close()
    expect((await sluice('accounts', 'list')).stdout).toContain(`rate limited  ${time.slice(0, 16).replace('T', ' ')}`)
  })

  test('that are unknown or ambiguous are rejected', async () => {
    await sluice('accounts', 'import', authFile('a.json', 'ada@example.test'), authFile('b.json', 'bob@example.test'))
    const missing = await sluice('accounts', 'pause', 'eve@example.test')
    expect([missing.exitCode, missing.stderr]).toEqual([
      1,
      'sluice: There is no account "eve@example.test". "sluice accounts list" shows them all.\n',
    ])
    const several = await sluice('accounts', 'pause', 'acc_')
    expect(several.exitCode).toBe(2)
    expect(several.stderr).toMatch(
      /"acc_" matches 2 accounts\. Use one of these ids: ada@\S+ \(acc_\w+\), bob@\S+ \(acc_\w+\)\.$/m,
    )
    expect((await sluice('accounts', 'pause', '')).stderr).toStartWith('sluice: There is no account "".')
    expect((await sluice('accounts', 'pause')).stderr).toBe(
      `sluice: Missing required argument 'account'.\nRun "sluice help accounts pause" for help.\n`,
    )
  })
})

describe('keys', () => {
  test('are shown once, complete and alone on stdout, and never again', async () => {
    const limits = [
      '--limit',
      'requests:5h:100',
      '--limit',
      'cost_usd:monthly:2.5:gpt-5.5',
      '--limit',
      'total_tokens:daily:5M',
    ]
    await createDatabase(dataDir)
    const made = await sluice('keys', 'create', '--name', 'laptop', '--model', 'gpt-5.5', ...limits)
    expect(made.exitCode).toBe(0)
    const key = made.stdout.trim()
    expect(key).toMatch(/^sk-clb-[\w-]{43}$/)
    expect(made.stderr).toMatch(
      /^Created the key "laptop"\. Copy it now. You cannot see it again\.\nKeys are optional: .*\n$/,
    )
    const [listed] = await json('keys', 'list')
    expect(listed).toMatchObject({ name: 'laptop', allowedModels: ['gpt-5.5'], isActive: true })
    expect(listed.limits).toMatchObject([
      { limitType: 'cost_usd', maxValue: 2_500_000, modelFilter: 'gpt-5.5' },
      { limitType: 'requests', maxValue: 100 },
      { limitType: 'total_tokens', maxValue: 5_000_000 },
    ])
    expect((await sluice('keys', 'revoke', 'laptop')).exitCode).toBe(0)
    const { stdout } = await sluice('keys', 'list')
    expect(stdout).toMatch(/ {2}revoked {2}/)
    expect(stdout).not.toContain(key)
  })

  test('are not called optional once they are required; until then they are, also with --json', async () => {
    const before = await sluice('keys', 'create', '--name', 'one', '--json')
    expect([before.exitCode, JSON.parse(before.stdout).name]).toEqual([0, 'one'])
    expect(before.stderr).toContain('clients on this machine can connect without a key or with an unrecognized one')
    expect(before.stderr).toContain('sluice settings set apiKeyAuthEnabled=true')
    expect((await sluice('settings', 'set', 'apiKeyAuthEnabled=true')).exitCode).toBe(0)
    expect((await sluice('keys', 'create', '--name', 'two')).stderr).toMatch(/^Created the key "two"\. .*\n$/)
    expect((await sluice('settings', 'set', 'apiKeyAuthEnabled=false')).exitCode).toBe(0)
  })

  test('of a disabled user are not listed as active, whatever their own state', async () => {
    for (const name of ['early', 'late', 'other']) await sluice('keys', 'create', '--name', name)
    const db = new Database(join(dataDir, 'sluice.db'))
    db.run(`INSERT INTO users (id, username, role_id, status, created_at)
      VALUES ('usr_x', 'bob', 'role_viewer', 'disabled', 1)`)
    db.run("UPDATE api_keys SET owner_user_id = 'usr_x' WHERE name <> 'other'")
    db.run("UPDATE api_keys SET is_active = 0, deactivated_reason = 'owner_disabled' WHERE name = 'early'")
    db.close()
    const [, ...lines] = (await sluice('keys', 'list')).stdout.trim().split('\n')
    const states = lines.map((line) => line.split(/ {2,}/)).map(([name, , state]) => [name, state])
    expect(states).toEqual([
      ['early', 'owner disabled'],
      ['late', 'owner disabled'],
      ['other', 'active'],
    ])
  })

  test('are listed with their expiry and their limits, in the units they were given in', async () => {
    const limits = ['--limit', 'cost_usd:monthly:2.5:gpt-5.5', '--limit', 'requests:5h:100']
    await sluice('keys', 'create', '--name', 'laptop', '--expires', '2099-01-31T18:00:00+01:00', ...limits)
    await sluice('keys', 'create', '--name', 'pl\nain')
    const [head = '', ...lines] = (await sluice('keys', 'list')).stdout.trim().split('\n')
    const cells = lines.map((line) => line.split(/ {2,}/).slice(0, -1))
    expect(cells).toEqual([
      [
        'laptop',
        expect.stringMatching(/^sk-clb-.+…$/),
        'active',
        '2099-01-31 17:00',
        'never',
        'cost_usd:monthly:0/2.5:gpt-5.5, requests:5h:0/100',
      ],
      ['plain', expect.any(String), 'active', 'never', 'never', 'unlimited'],
    ])
    expect(new Set([head, ...lines].map((line) => line.search(/STATUS|active/))).size).toBe(1)
  })

  test('are found by their id even if another key has it as its name', async () => {
    const { id, key } = await json('keys', 'create', '--name', 'first')
    expect(key).toStartWith('sk-clb-')
    await sluice('keys', 'create', '--name', id)
    expect((await sluice('keys', 'revoke', id)).stdout).toMatch(/^Revoked key "first" \(sk-clb-\S+…\)\.\n$/)
  })

  test('can have large and precise limits', async () => {
    const limits = ['--limit', 'cost_usd:monthly:17000.01', '--limit', 'total_tokens:monthly:16.1G']
    expect((await sluice('keys', 'create', '--name', 'large', ...limits)).exitCode).toBe(0)
    const [{ limits: kept }] = await json('keys', 'list')
    expect(kept).toMatchObject([{ maxValue: 17_000_010_000 }, { maxValue: 16_100_000_000 }])
  })

  test.each([
    [[], '--name laptop'],
    [['laptop'], 'Too many arguments'],
    [['--name', 'x', '--limit', 'tokens:5h:1'], 'is not TYPE:WINDOW:MAX[:MODEL]. Types: '],
    [['--name', 'x', '--limit', 'requests:5h:-1'], 'is not TYPE:WINDOW:MAX'],
    [['--name', 'x', '--limit', 'requests:5h:1.5'], 'requests:5h:1.5 is too fine'],
    [['--name', 'x', '--limit', 'requests:5h:0'], '--limit requests:5h:0 allows nothing: MAX must be above 0.'],
    [['--name', 'x', '--expires', 'soon'], '--expires soon is not a date'],
    [['--name', 'x', '--expires', '12'], '--expires 12 is not a date'],
    [['--name', 'x', '--expires', '2001-12-01'], '--expires 2001-12-01 is in the past.'],
    [['--name', ''], '--name must not be empty.'],
    [['--name', 'x'.repeat(129)], '--name must have at most 128 characters.'],
    [['--name', 'x', '--model', 'm'.repeat(256)], '--model must have at most 255 characters.'],
    [
      ['--name', 'x', ...['requests:5h:1', 'requests:5h:2'].flatMap((limit) => ['--limit', limit])],
      'Two limits have the same',
    ],
    [['--nmae', 'x'], "Unknown option '--nmae'. Did you mean --name?"],
  ])('create %j is rejected with a hint', async (args, hint) => {
    const { exitCode, stderr, stdout } = await sluice('keys', 'create', ...args)
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toContain(hint)
  })
})

describe('settings', () => {
  test('are set together or not at all', async () => {
    const set = await sluice('settings', 'set', 'apiKeyAuthEnabled=true', 'routingStrategy=fill_first')
    expect(set).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('routingStrategy = fill_first') })
    expect((await sluice('settings', 'get', 'routingStrategy')).stdout).toBe('fill_first\n')
    const bad = await sluice('settings', 'set', 'proxyAccountStreamLimit=4', 'routingStrategy=luck')
    expect(bad.exitCode).toBe(2)
    expect(await json('settings', 'get', 'proxyAccountStreamLimit')).toEqual({ proxyAccountStreamLimit: 8 })
    expect((await sluice('settings', 'get', 'nonsense')).exitCode).toBe(2)
    expect((await sluice('settings', 'set', 'routingStrategy=single_account')).stderr).toContain('singleAccountId')
  })

  test('are listed with their defaults', async () => {
    await sluice('settings', 'set', 'APIKEYAUTHENABLED=true')
    const { exitCode, stdout } = await sluice('settings', 'get')
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^SETTING +VALUE +DEFAULT\n/)
    expect(stdout).toMatch(/^apiKeyAuthEnabled +true +false$/m)
    expect(stdout).toMatch(/^singleAccountId +none +none$/m)
    expect((await sluice('settings', 'get', 'apiKeyAuthEnabled', 'singleAccountId')).stdout.split('\n')).toHaveLength(4)
  })

  test('record who changed what in the audit log, and nothing if nothing changed', async () => {
    await sluice('settings', 'set', 'routingStrategy=fill_first', 'requestLogRetentionDays=90')
    const again = await sluice('settings', 'set', 'singleAccountId=none')
    expect(again).toMatchObject({ exitCode: 0, stdout: 'Nothing changed.\n' })
    const db = new Database(join(dataDir, 'sluice.db'), { readonly: true })
    const rows = db.query<{ actor: string; details: string }, []>('SELECT actor, details FROM audit_logs').all()
    db.close()
    expect(rows.map(({ actor, details }) => [actor, JSON.parse(details).changes])).toEqual([
      [
        'cli',
        {
          routingStrategy: { from: 'capacity_weighted', to: 'fill_first' },
          requestLogRetentionDays: { from: 0, to: 90 },
        },
      ],
    ])
  })

  test.each([
    [[], "Missing required argument 'name=value'"],
    [['routingStrategy'], 'Write "routingStrategy" as NAME=VALUE.'],
    [['=x'], 'Write "=x" as NAME=VALUE.'],
    [['routingStrategy=luck'], 'routingStrategy must be one of capacity_weighted, usage_weighted,'],
    [['proxyAccountStreamLimit=-1'], 'proxyAccountStreamLimit must be a whole number from 0 to 10000, not "-1".'],
    [['relativeAvailabilityTopK=abc'], 'relativeAvailabilityTopK must be a whole number from 1 to 20, not "abc".'],
    [['relativeAvailabilityPower=0'], 'relativeAvailabilityPower must be a number above 0, up to 16, not "0".'],
    [['apiKeyAuthEnabled=maybe'], 'apiKeyAuthEnabled must be true or false, not "maybe".'],
    [['corsOrigins=x'], 'corsOrigins must be origins like https://app.example, separated by spaces, not "x".'],
  ])('set %j is rejected with the reason', async (args, reason) => {
    const { exitCode, stderr } = await sluice('settings', 'set', ...args)
    expect(exitCode).toBe(2)
    expect(stderr).toContain(reason)
  })
})

test.each([
  [['toString'], 2, "Unknown command 'toString'."],
  [['statsu'], 2, "Unknown command 'statsu'. Did you mean status?"],
  [['help', 'nope'], 2, "Unknown command 'nope'."],
  [['accounts', 'explode'], 2, 'Run "sluice help accounts" for help.'],
  [['accounts'], 2, 'Usage: sluice accounts'],
  [['accounts', 'import'], 2, "Missing required argument 'file'"],
  [['completion', 'tcsh'], 2, 'Use bash, zsh or fish.'],
  [['logs', '--limit', 'many'], 2, '--limit must be a whole number from 0 to 1000, not "many".'],
] as const)('%j ends with %d', async (args, code, hint) => {
  const { exitCode, stderr } = await sluice(...args)
  expect(exitCode).toBe(code)
  expect(stderr).toContain(hint)
  expect(stderr).not.toContain('    at ')
  expect(existsSync(dataDir)).toBe(false)
})

describe('output', () => {
  const shell = (line: string) => runCommand([], { dataDir, command: ['sh', '-c', `${PROGRAM.join(' ')} ${line}`] })

  test('that cannot be written is reported in a sentence, and fails', async () => {
    const { exitCode, stderr } = await shell('keys create --name laptop > /dev/full')
    expect(exitCode).toBe(1)
    expect(stderr).toContain('sluice: The output could not be written: ENOSPC')
    expect(stderr).not.toContain('    at ')
  })

  test('closed early by its reader causes no message', async () => {
    await createDatabase(dataDir)
    expect((await shell('settings get | true')).stderr).toBe('')
  })

  test('omits control characters in names', async () => {
    await spawned('keys', 'create', '--name', 'a\x1b]0;b\x07')
    const [{ id }] = JSON.parse((await spawned('keys', 'list', '--json')).stdout)
    expect((await spawned('keys', 'revoke', id)).stdout).toStartWith('Revoked key "a]0;b" (')
  })

  test('omits bidirectional controls in names, and escapes them in JSON', async () => {
    await spawned('keys', 'create', '--name', 'a\u202eb\u2066c')
    const listed = await spawned('keys', 'list')
    expect(listed.stdout).toContain('abc')
    expect(listed.stdout).not.toMatch(/\p{Bidi_C}/u)
    const { stdout } = await spawned('keys', 'list', '--json')
    expect(stdout).toContain('a\\u202eb\\u2066c')
    expect(JSON.parse(stdout)).toMatchObject([{ name: 'a\u202eb\u2066c' }])
    const [{ id }] = JSON.parse(stdout)
    expect((await spawned('keys', 'revoke', id)).stdout).toStartWith('Revoked key "abc" (')
  })
})

test('help and version open nothing', async () => {
  const [bare, help] = [await spawned(), await spawned('help')]
  expect([bare.exitCode, bare.stderr, bare.stdout]).toEqual([0, '', help.stdout])
  expect(help.stdout).toContain('Usage: sluice')
  expect((await spawned('accounts', '--help')).exitCode).toBe(0)
  expect((await spawned('version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  expect(existsSync(dataDir)).toBe(false)
})

describe('the folder', () => {
  test('without a database is named, once: the database of the server may be elsewhere', async () => {
    const [first, second] = [await spawned('keys', 'create', '--name', 'a'), await spawned('keys', 'list')]
    expect(first.stderr).toStartWith(
      `Created a new database: ${join(dataDir, 'sluice.db')}. If you expected an existing one, set SLUICE_DATA_DIR.\n`,
    )
    expect(second.stderr).toBe('')
  })

  test('that others could read is made private', async () => {
    mkdirSync(dataDir, { mode: 0o755 })
    await spawned('keys', 'create', '--name', 'a')
    expect(statSync(dataDir).mode & 0o777).toBe(0o700)
  })

  test('that cannot be created is named, with the variable to set', async () => {
    writeFileSync(dataDir, '')
    const { exitCode, stderr } = await runCommand(['keys', 'create', '--name', 'a'], { dataDir: join(dataDir, 'sub') })
    expect(exitCode).toBe(1)
    expect(stderr).toBe(
      `sluice: The data folder ${dataDir}/sub cannot be created (ENOTDIR). Set SLUICE_DATA_DIR to another folder.\n`,
    )
  })
})

describe('the encryption key of the folder', () => {
  test('another one stops everything with a clear message', async () => {
    await createDatabase(dataDir)
    writeFileSync(join(dataDir, 'encryption.key'), `${Buffer.alloc(32, 1).toString('base64url')}\n`)
    const { exitCode, stderr } = await spawned('accounts', 'list')
    expect(exitCode).toBe(1)
    expect(stderr).toContain('is not the encryption key of this database')
    expect(stderr).not.toContain('    at ')
  })

  test('a missing one is not replaced by a new one', async () => {
    await createDatabase(dataDir)
    rmSync(join(dataDir, 'encryption.key'))
    const { exitCode, stderr } = await spawned('accounts', 'list')
    expect(exitCode).toBe(1)
    expect(stderr).toContain('encryption.key is missing')
    expect(existsSync(join(dataDir, 'encryption.key'))).toBe(false)
  })
})

test('a server that does not respond is not healthy, and the command does not wait for it', async () => {
  const { promise, resolve } = Promise.withResolvers<Response>()
  const silent = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => promise })
  const env = { HOST: '127.0.0.1', PORT: String(silent.port) }
  const { exitCode, stderr } = await runCommand(['healthcheck'], { env })
  resolve(new Response())
  await silent.stop(true)
  expect([exitCode, stderr]).toEqual([1, 'sluice: The server is not ready: no answer within 3000 ms.\n'])
}, 120_000)

describe('beside a running server', () => {
  test('health is the exit code, and the server sees changes', async () => {
    // Nothing listens there: the server finds out, and says so in its log.
    const nowhere = 'http://127.0.0.1:1'
    const upstream = { CODEX_LB_UPSTREAM_BASE_URL: nowhere, CODEX_LB_AUTH_BASE_URL: nowhere }
    await using server = await spawnServer({ dataDir, env: upstream })
    expect((await runCommand(['healthcheck'], { env: server.env })).exitCode).toBe(0)
    await spawned('accounts', 'import', authFile('a.json', 'ada@example.test'))
    await untilListed(server.url, (accounts) => accounts.length === 1)
    await spawned('accounts', 'pause', 'ada@example.test')
    await untilListed(server.url, ([account]) => account?.status === 'paused')
    await server.stop()
    const dead = await runCommand(['healthcheck'], { env: server.env })
    expect(dead.exitCode).toBe(1)
    expect(dead.stderr).toContain('not ready')
  }, 120_000)
})
