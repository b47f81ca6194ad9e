/** The doctor's checks, each with a finding. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { VERSION } from '../../src/boot/version.ts'
import { parseCidr } from '../../src/lib/cidr.ts'
import { type Check, type Finding, getWorstVerdict, runChecks } from '../../src/ops/checks.ts'
import { Doctor } from '../../src/ops/doctor.ts'
import { type FolderFacts, folderChecks } from '../../src/ops/folder-checks.ts'
import { proxyChecks, type SeenRequest } from '../../src/ops/proxy-checks.ts'
import { type UpstreamFacts, upstreamChecks } from '../../src/ops/upstream-checks.ts'
import { ManualClock } from '../support/clock.ts'

const HOUR_MS = 3_600_000
const MIB = 1024 * 1024

const byId = async (checks: Check[]): Promise<Record<string, Finding>> =>
  Object.fromEntries((await runChecks(checks)).map((finding) => [finding.id, finding]))

/** Everything that is not fine says what to do. */
const expectAdvice = (findings: Iterable<Finding>) => {
  for (const { verdict, advice } of findings)
    if (verdict === 'warning' || verdict === 'problem') expect(advice).not.toBeNull()
}

test('a check that throws is a finding, and the others are still reported', async () => {
  const found = await runChecks([
    { id: 'a', title: 'A', run: () => Promise.reject(new Error('no such thing')) },
    { id: 'b', title: 'B', run: () => ({ verdict: 'warning', says: 'hm', advice: 'do' }) },
  ])
  expect(found.map(({ verdict }) => verdict)).toEqual(['unknown', 'warning'])
  expect(found[0]?.says).toContain('no such thing')
  expect(getWorstVerdict(found)).toBe('warning')
  expect(getWorstVerdict(found.toReversed())).toBe('warning')
  expect(getWorstVerdict([])).toBe('ok')
})

test('a missing file is reported as created at the first start', async () => {
  const [missing, refused] = await runChecks(
    ['ENOENT', 'EACCES'].map((code) => ({
      id: code,
      title: code,
      run: () => Promise.reject(Object.assign(new Error(code), { code })),
    })),
  )
  expect(missing?.says).toBe('It doesn’t exist yet. It is created on first start.')
  expect(refused?.says).toContain('The check failed')
})

describe('the data folder', () => {
  let dir: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-doctor-'))
    writeFileSync(join(dir, 'sluice.db'), 'x', { mode: 0o600 })
    writeFileSync(join(dir, 'encryption.key'), `${Buffer.alloc(32, 1).toString('base64url')}\n`, { mode: 0o600 })
  })
  afterEach(() => rmSync(dir, { recursive: true }))

  const examine = async (more: Partial<FolderFacts> = {}) => {
    const found = await byId(
      folderChecks({
        dir,
        databasePath: join(dir, 'sluice.db'),
        keyPath: join(dir, 'encryption.key'),
        keyFingerprint: null,
        databaseFinding: null,
        backups: async () => [{ name: 'sluice-1.db', bytes: 5, at: 9 * HOUR_MS, kind: 'scheduled' }],
        backupIntervalHours: 24,
        now: 10 * HOUR_MS,
        ...more,
      }),
    )
    expectAdvice(Object.values(found))
    return found
  }

  test('is fine when it is in order', async () => {
    const { data_folder, database, key_file, backup } = await examine()
    expect([data_folder, database, key_file, backup].map((finding) => finding?.verdict)).toEqual([
      'ok',
      'ok',
      'ok',
      'ok',
    ])
    expect(backup?.says).toContain('1 h ago')
    expect(database?.says).toBe('1 MiB, plus a write-ahead log of 0 MiB.')
  })

  test('is reported when a backup is dated in the future, because the clock may be wrong', async () => {
    const backups: FolderFacts['backups'] = async () => [
      { name: 'sluice-2.db', bytes: 5, at: 99 * HOUR_MS, kind: 'scheduled' },
      { name: 'sluice-1.db', bytes: 5, at: 9 * HOUR_MS, kind: 'scheduled' },
    ]
    const { backup } = await examine({ backups })
    expect(backup).toMatchObject({
      verdict: 'warning',
      says: expect.stringContaining('sluice-2.db is dated in the future'),
    })
  })

  test.each([
    ['EACCES', 'The current user can’t read', /run as root: chown -R \d+ \S+backups && chmod 0700/],
    ['ENOTDIR', 'backups is not a folder.', /Move that file away/],
    ['EIO', 'backups can’t be read: EIO.', /Check the system log/],
  ])('is reported when its backups cannot be read (%s), with advice', async (code, says, advice) => {
    const backups: FolderFacts['backups'] = () => Promise.reject(Object.assign(new Error(code), { code }))
    const { backup } = await examine({ backups })
    expect(backup).toMatchObject({
      verdict: 'problem',
      says: expect.stringContaining(says),
      advice: expect.stringMatching(advice),
    })
  })

  test('is reported when others can read it, with the command that fixes it', async () => {
    chmodSync(dir, 0o755)
    chmodSync(join(dir, 'sluice.db'), 0o644)
    chmodSync(join(dir, 'encryption.key'), 0o640)
    const { data_folder, database, key_file } = await examine()
    expect(data_folder).toMatchObject({ verdict: 'warning', advice: `chmod 0700 ${dir}` })
    expect(database).toMatchObject({ verdict: 'warning' })
    expect(key_file).toMatchObject({ verdict: 'warning', advice: `chmod 0600 ${join(dir, 'encryption.key')}` })
  })

  test('is reported when there is no space for a copy of the database', async () => {
    const room = async () => (await examine()).disk_space
    const { bavail, bsize } = statfsSync(dir)
    truncateSync(join(dir, 'sluice.db'), Math.ceil((bavail * bsize) / 1.9)) // in a hole, which takes no space
    expect(await room()).toMatchObject({ verdict: 'warning', says: expect.stringContaining('the database takes') })
  })

  test('is reported when the write-ahead log has grown large', async () => {
    const log = join(dir, 'sluice.db-wal')
    writeFileSync(log, '')
    truncateSync(log, 256 * MIB)
    expect((await examine()).database?.verdict).toBe('ok')
    truncateSync(log, 256 * MIB + 1)
    expect((await examine()).database).toMatchObject({ verdict: 'warning', says: expect.stringContaining('257 MiB') })
  })

  test.each(['sluice.db', 'sluice.db/sub'])('is reported when it is a file, or in one: %s', async (name) => {
    const { data_folder } = await examine({ dir: join(dir, name) })
    expect(data_folder).toMatchObject({ verdict: 'problem', says: `${join(dir, name)} is not a folder.` })
  })

  test.skipIf(process.getuid?.() !== 0)('owned by another user must be fixed by root', async () => {
    chmodSync(dir, 0o755)
    chownSync(dir, 65_532, 65_532)
    const advice = async () => (await examine()).data_folder?.advice
    expect(await advice()).toBe(`As root: chown 0 ${dir} && chmod 0700 ${dir}`)
    chownSync(join(dir, 'sluice.db'), 65_532, 65_532) // the user who runs the check, here root, may differ from the server's
    expect(await advice()).toBe(`chmod 0700 ${dir}`)
  })

  test('a missing or different key is detected before the next start', async () => {
    expect((await examine({ keyFingerprint: 'abc' })).key_file).toMatchObject({ verdict: 'problem' })
    rmSync(join(dir, 'encryption.key'))
    expect((await examine({ keyFingerprint: 'abc' })).key_file?.says).toContain('is missing')
    expect((await examine()).key_file?.verdict).toBe('unknown')
  })

  test('an invalid key file is a problem, whether or not the database is readable', async () => {
    writeFileSync(join(dir, 'encryption.key'), 'not a key')
    for (const keyFingerprint of ['abc', null, undefined])
      expect((await examine({ keyFingerprint })).key_file).toMatchObject({
        verdict: 'problem',
        says: expect.stringContaining('Sluice won’t start again'),
      })
  })

  test('a key is not called correct while the database cannot be read', async () => {
    expect((await examine({ keyFingerprint: undefined })).key_file?.verdict).toBe('unknown')
  })

  test.each([
    ['overdue', { now: 58 * HOUR_MS }, 'problem', '2 days old'],
    ['just made', { now: 9.5 * HOUR_MS }, 'ok', '30 min ago'],
    ['made yesterday', { now: 50 * HOUR_MS }, 'ok', '41 h ago'],
    ['none yet', { backups: async () => [] }, 'warning', 'There are no backups yet'],
    ['none, and switched off', { backups: async () => [], backupIntervalHours: 0 }, 'warning', 'There are no backups'],
    ['by hand only', { backupIntervalHours: 0 }, 'unknown', '1 h ago'],
  ] as const)('backups: %s', async (_, facts, verdict, words) => {
    const { backup } = await examine(facts)
    expect(backup?.verdict).toBe(verdict)
    expect(backup?.says).toContain(words)
  })
})

/** An outgoing connection without a proxy. */
const direct = { isProxied: () => false, canConnect: async () => true }

describe('the upstream', () => {
  const examine = async (fetch: UpstreamFacts['dial']['fetch'], more: Partial<UpstreamFacts['dial']> = {}) => {
    const clock = new ManualClock()
    const dial = { ...direct, fetch, ...more }
    const facts = { dial, clock, baseUrl: 'https://api.test/x', authBaseUrl: 'https://auth.test' }
    const running = byId(upstreamChecks(facts))
    await clock.advance('6s')
    const found = await running
    expectAdvice(Object.values(found))
    expect(clock.pending).toBe(0)
    return found
  }
  const start = new ManualClock().now()
  const dated = (skewMs: number) => async () =>
    new Response('', { status: 401, headers: { date: new Date(start - skewMs).toUTCString() } })

  test('any response suffices, and its date is compared with the clock', async () => {
    const { upstream_http, clock, sign_in_service, upstream_websocket } = await examine(dated(0))
    expect([upstream_http, clock, sign_in_service].map((finding) => finding?.verdict)).toEqual(['ok', 'ok', 'ok'])
    expect(upstream_websocket?.verdict).toBe('unknown')
  })

  test.each([
    [60_000, 'warning', '60 s ahead of'],
    [-60_000, 'warning', '61 s behind'],
    [600_000, 'problem', '600 s ahead of'],
  ] as const)('a clock that is %d ms off', async (skewMs, verdict, words) => {
    const { clock } = await examine(dated(skewMs))
    expect(clock?.verdict).toBe(verdict)
    expect(clock?.says).toContain(words)
  })

  test('an upstream with an error is not called fine', async () => {
    const { upstream_http } = await examine(async () => new Response('', { status: 503 }))
    expect(upstream_http).toMatchObject({ verdict: 'warning', says: 'api.test answered with status 503 after 0 ms.' })
  })

  test('one that cannot be reached gives the reason, and leaves the clock unknown', async () => {
    const { upstream_http, clock } = await examine(() => Promise.reject(new Error('getaddrinfo ENOTFOUND')))
    expect(upstream_http).toMatchObject({
      verdict: 'problem',
      says: 'Can’t reach api.test: getaddrinfo ENOTFOUND.',
    })
    expect(clock).toMatchObject({ verdict: 'unknown', says: 'Can’t check it, because ChatGPT didn’t answer.' })
  })

  test.each([
    [false, 'the proxy doesn’t accept connections'],
    [true, 'connection reset'],
  ])('through an outbound proxy that accepts connections: %p', async (canConnect, why) => {
    const cut = Object.assign(new Error('cut'), { code: canConnect ? 'ECONNRESET' : 'ECONNREFUSED' })
    const way = { isProxied: () => true, canConnect: async () => canConnect }
    const { upstream_http, sign_in_service } = await examine(() => Promise.reject(cut), way)
    expect(upstream_http?.says).toBe(`Can’t reach api.test through the outbound proxy: ${why}.`)
    expect(sign_in_service?.says).toBe(`Can’t reach auth.test through the outbound proxy: ${why}.`)
  })

  test('a response without a date gives no information about the clock', async () => {
    const { upstream_http, clock } = await examine(async () => new Response(''))
    expect([upstream_http?.verdict, clock?.verdict]).toEqual(['ok', 'unknown'])
  })

  test('one that does not respond times out', async () => {
    const never = (_: string, { signal }: RequestInit) =>
      new Promise<Response>((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    expect((await examine(never)).upstream_http?.says).toContain('no answer within 5 s')
  })

  test('a rejected handshake is fine; an unreachable upstream is not', async () => {
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('', { status: 401 }) })
    const check = (baseUrl: string) => {
      const dial = { ...direct, fetch: dated(0), socketAgent: async () => undefined }
      const facts = { dial, clock: new ManualClock(), baseUrl, authBaseUrl: baseUrl }
      return byId(upstreamChecks(facts).filter(({ id }) => id === 'upstream_websocket'))
    }
    expect((await check(`http://127.0.0.1:${server.port}`)).upstream_websocket).toMatchObject({
      verdict: 'ok',
      says: expect.stringContaining('(401)'),
    })
    await server.stop(true)
    expect((await check(`http://127.0.0.1:${server.port}`)).upstream_websocket?.verdict).toBe('warning')
  })

  test('an accepted handshake without a token is fine, too', async () => {
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request, taking) => (taking.upgrade(request) ? undefined : new Response('', { status: 400 })),
      websocket: { message: () => {} },
    })
    const baseUrl = `http://127.0.0.1:${server.port}`
    const dial = { ...direct, fetch: dated(0), socketAgent: async () => undefined }
    const checks = upstreamChecks({ dial, clock: new ManualClock(), baseUrl, authBaseUrl: baseUrl })
    const { upstream_websocket } = await byId(checks.filter(({ id }) => id === 'upstream_websocket'))
    await server.stop(true)
    expect(upstream_websocket).toMatchObject({ verdict: 'ok', says: expect.stringContaining('(101)') })
  })

  test('gets the user agent of Sluice', async () => {
    const agents: (string | null)[] = []
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: ({ headers }) => {
        agents.push(headers.get('user-agent'))
        return new Response('', { status: 401 })
      },
    })
    const baseUrl = `http://127.0.0.1:${server.port}`
    const dial = { ...direct, fetch, socketAgent: async () => undefined }
    await runChecks(upstreamChecks({ dial, clock: new ManualClock(), baseUrl, authBaseUrl: baseUrl }))
    await server.stop(true)
    expect(agents).toEqual(Array(3).fill(`sluice/${VERSION}`))
  })
})

describe('the reverse proxy', () => {
  const trust = [parseCidr('10.0.0.1/32')!]
  const seen = (more: Partial<SeenRequest>, headers: Record<string, string> = {}) =>
    byId(
      proxyChecks({
        peer: '10.0.0.1',
        clientIp: '192.0.2.1',
        headers: new Headers({ host: 'sluice.test', ...headers }),
        trust: null,
        publicUrl: null,
        ...more,
      }),
    )
  const FORWARDED = { 'x-forwarded-for': '192.0.2.1' }

  test.each([
    ['no proxy', {}, {}, 'ok', 'directly'],
    ['one that is not trusted at all', {}, FORWARDED, 'warning', 'aren’t trusted'],
    ['one beside the trusted range', { trust, peer: '10.0.0.2' }, FORWARDED, 'warning', '10.0.0.2'],
    ['a trusted one', { trust }, FORWARDED, 'ok', 'Your address is 192.0.2.1'],
    ['a trusted one without a client address', { trust }, {}, 'warning', 'doesn’t send the client’s address'],
    ['a trusted one that contradicts itself', { trust, clientIp: null }, FORWARDED, 'warning', 'are contradictory'],
    ['an unknown peer', { peer: null }, {}, 'unknown', 'is unknown'],
  ] as const)('%s', async (_, facts, headers, verdict, words) => {
    const { trusted_proxies } = await seen(facts, headers)
    expect(trusted_proxies?.verdict).toBe(verdict)
    expect(trusted_proxies?.says).toContain(words)
    expectAdvice(trusted_proxies ? [trusted_proxies] : [])
  })

  test('the advice names the exact range to add', async () => {
    const { trusted_proxies } = await seen({ trust, peer: '2001:db8::7' }, FORWARDED)
    expect(trusted_proxies?.advice).toContain('2001:db8::7/128')
    expect((await seen({ trust, peer: '10.0.0.2' }, FORWARDED)).trusted_proxies?.advice).toContain('10.0.0.2/32')
  })

  test('a Host header rewritten on the way is detected', async () => {
    expect((await seen({ publicUrl: 'https://sluice.example' })).host_header?.verdict).toBe('warning')
    expect((await seen({ publicUrl: 'https://sluice.test' })).host_header?.verdict).toBe('ok')
    expect((await seen({}, { 'x-forwarded-host': 'other.test' })).host_header).toMatchObject({
      verdict: 'warning',
      says: 'The browser sends other.test, but it arrives as sluice.test.',
    })
    expect((await seen({ headers: new Headers() })).host_header?.verdict).toBe('unknown')
  })
})

test('a report is cached for half a minute, so that viewing it causes no traffic', async () => {
  const clock = new ManualClock()
  let asked = 0
  const fetch = async () => {
    asked++
    return new Response('')
  }
  const folder = async () => ({
    dir: '/nowhere',
    databasePath: '/nowhere/x',
    keyPath: '/nowhere/y',
    keyFingerprint: null,
    databaseFinding: null,
    backups: async () => [],
    backupIntervalHours: 24,
    now: 0,
  })
  const doctor = new Doctor({
    clock,
    folder,
    upstream: { dial: { ...direct, fetch }, clock, baseUrl: 'https://api.test', authBaseUrl: 'https://auth.test' },
  })
  await clock.advance('1m')
  const [first, second] = await Promise.all([doctor.report(), doctor.report()])
  expect([asked, first === second]).toEqual([2, true])
  await clock.advance('20s')
  await doctor.report()
  expect(asked).toBe(2)
  await clock.advance('10s')
  await doctor.report()
  expect(asked).toBe(4)
})
