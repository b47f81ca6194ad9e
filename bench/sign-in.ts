/** Whether a wrong sign-in tells why it was wrong: bytes and times of an unknown user, a wrong password, a disabled account, none set. */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { freePort } from '../tests/support/free-port.ts'
import type { Lab } from './lab.ts'
import { startServer, waitForAnswer } from './processes.ts'
import { kolmogorovSmirnov, mean, percentile } from './stats.ts'
import { type SluiceSeed, seedSluice } from './targets.ts'

const PASSWORD = 'the right password of everybody'
const WARM_UP = 40
/** One chance in a hundred that any of the six pairs differs that much by accident. */
const SMALLEST_P = 0.01 / 6

/** What is sent, per class; everything but an unknown name is a real account. Names are of one length, as bodies should be. */
const CLASSES = {
  'unknown user': { username: 'nobody00', password: PASSWORD },
  'wrong password': { username: 'anna0000', password: 'the wrong password of everybody' },
  'disabled account': { username: 'berta000', password: PASSWORD },
  'no password set': { username: 'carla000', password: PASSWORD },
} as const
type Class = keyof typeof CLASSES
const NAMES = Object.keys(CLASSES) as Class[]

/** Tries of each class in turn, in a random order within each round, each from an address of its own behind a trusted proxy. */
export async function measureSignIn({ options, report, upstream, seed }: Lab): Promise<void> {
  if (!seed) return
  report.heading(`wrong sign-ins, ${options.signInTries} of each class, interleaved`)
  const folder = await seedSluice(seed.command, upstream.url, join(seed.dataDir, '..'))
  await addPeople(folder)
  const server = await startBehindProxy(folder)
  try {
    const times = new Map<Class, number[]>(NAMES.map((name) => [name, []]))
    const answers = new Map<string, Set<Class>>()
    for (let round = -WARM_UP; round < options.signInTries; round++)
      for (const name of shuffled(NAMES)) {
        const { ms, answer } = await tryOnce(server.url, name)
        if (round < 0) continue
        times.get(name)?.push(ms)
        answers.set(answer, (answers.get(answer) ?? new Set()).add(name))
      }
    show(report, times)
    report.check('different answers to a wrong sign-in', answers.size, '<=', 1, '')
    for (const [answer, names] of answers) report.note(`${[...names].join(', ')}: ${answer}`)
  } finally {
    await server.stop()
  }
}

function show(report: Lab['report'], times: ReadonlyMap<Class, number[]>): void {
  const rows = [...times].map(([name, ms]) => {
    const sorted = ms.toSorted((a, b) => a - b)
    return [
      name,
      ...[mean(ms), ...[0.5, 0.95].map((fraction) => percentile(sorted, fraction))].map((x) => x.toFixed(3)),
    ]
  })
  report.table(['class', 'mean ms', 'p50', 'p95'], rows)
  const pairs = NAMES.flatMap((one, n) => NAMES.slice(n + 1).map((other) => [one, other] as const))
  const compared = pairs.map(([one, other]) => {
    const { d, p } = kolmogorovSmirnov(times.get(one) ?? [], times.get(other) ?? [])
    return { name: `${one} / ${other}`, d, p }
  })
  report.table(
    ['pair', 'KS D', 'KS p'],
    compared.map(({ name, d, p }) => [name, d.toFixed(3), p.toFixed(3)]),
  )
  report.check('smallest KS p of a pair', Math.min(...compared.map(({ p }) => p)), '>=', SMALLEST_P, '')
}

let addresses = 0

/** Everything of the answer that a client sees, but what is new with every request. */
async function tryOnce(url: string, name: Class): Promise<{ ms: number; answer: string }> {
  const n = addresses++
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}` },
    body: JSON.stringify(CLASSES[name]),
  }
  const startedAt = performance.now()
  const response = await fetch(`${url}/api/dashboard-auth/password/login`, init)
  const text = await response.text()
  const ms = performance.now() - startedAt
  const headers = [...response.headers].filter(([header]) => header !== 'x-request-id' && header !== 'date')
  return { ms, answer: JSON.stringify([response.status, headers, text]) }
}

/** Written straight into the database of a folder that no server uses. */
async function addPeople({ dataDir }: SluiceSeed): Promise<void> {
  const hash = await Bun.password.hash(PASSWORD, { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 })
  const db = new Database(join(dataDir, 'sluice.db'))
  const add = db.query(
    'INSERT INTO users (id, username, role_id, status, password_hash, created_at) VALUES (?, ?, ?, ?, ?, 0)',
  )
  add.run('usr_a', 'anna0000', 'role_admin', 'active', hash)
  add.run('usr_b', 'berta000', 'role_admin', 'disabled', hash)
  add.run('usr_c', 'carla000', 'role_admin', 'active', null)
  db.close()
}

async function startBehindProxy({ command, dataDir, upstreamUrl }: SluiceSeed) {
  const port = freePort()
  const env = {
    CODEX_LB_DATA_DIR: dataDir,
    CODEX_LB_UPSTREAM_BASE_URL: upstreamUrl,
    CODEX_LB_AUTH_BASE_URL: upstreamUrl,
    CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
    CODEX_LB_LOG_LEVEL: 'error',
    HOST: '127.0.0.1',
    PORT: String(port),
  }
  const server = startServer([...command, 'serve'], port, env, join(dataDir, '..', `stderr-${port}.log`))
  await waitForAnswer(`${server.url}/health/live`, 10_000)
  return server
}

const shuffled = <T>(list: readonly T[]): T[] =>
  list
    .map((item) => [Math.random(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item)
