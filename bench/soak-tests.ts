/** Runs the repository's property tests with many more runs, which they read from `PROPERTY_RUNS`. */
import type { SoakContext } from './soak-step.ts'

const RUNS = 10_000

/** Finds the test files with properties and runs them in one `bun test`. Fails with its output. */
export async function propertyTests({ scale, seed }: SoakContext): Promise<string> {
  const files: string[] = []
  for await (const file of new Bun.Glob('tests/**/*.test.ts*').scan()) {
    if (!file.includes('node_modules') && (await Bun.file(file).text()).includes('support/property.ts'))
      files.push(`./${file}`)
  }
  if (files.length === 0) throw new Error('no test file uses tests/support/property.ts')
  const runs = Math.ceil(RUNS * scale)
  await runTests(files.sort(), { PROPERTY_RUNS: String(runs), SEED: String(seed) })
  return `${files.length} files, ${runs} runs each`
}

const FRAMES = 100_000
const KILLS = 5_000

/** Random frames on sockets, with either side killed at random points. */
export async function socketTests({ scale, seed }: SoakContext): Promise<string> {
  const [frames, kills] = [FRAMES * scale, KILLS * scale].map(Math.ceil)
  await runTests(['./tests/sockets/fuzz.test.ts', './tests/sockets/chaos.test.ts'], {
    SOCKET_FRAMES: String(frames),
    SOCKET_KILLS: String(kills),
    SEED: String(seed),
  })
  return `${frames} frames, ${kills} kills`
}

const STREAMS = 100

/** Streams of each transport while the server is reloaded. */
export async function reloadTests({ scale }: SoakContext): Promise<string> {
  const streams = Math.ceil(STREAMS * scale)
  await runTests(['./tests/process/reload.test.ts'], { RELOAD_STREAMS: String(streams) })
  return `${2 * streams} streams`
}

const LIMIT = 5000

/** Twice as many parallel requests as a key may send, over three processes. */
export async function limitTests({ scale }: SoakContext): Promise<string> {
  const limit = Math.ceil(LIMIT * scale)
  await runTests(['./tests/process/processes.test.ts'], { KEY_LIMIT: String(limit) })
  return `${2 * limit} requests, ${limit} allowed`
}

const DEATHS = 50
const REFRESHES = 1000
const OUTAGE_MS = 30_000

/** Three servers on one PostgreSQL: limits, kills and freezes at random moments, token refreshes, and an outage. */
export async function nodeTests({ scale }: SoakContext): Promise<string> {
  const [limit, deaths, refreshes] = [LIMIT * scale, DEATHS * scale, REFRESHES * scale].map(Math.ceil)
  const files = ['nodes', 'nodes-refreshes', 'nodes-outage'].map((name) => `./tests/process/${name}.test.ts`)
  await runTests(files, {
    KEY_LIMIT: String(limit),
    NODE_DEATHS: String(deaths),
    REFRESHES: String(refreshes),
    OUTAGE_MS: String(OUTAGE_MS),
    CI: 'true', // so that nothing is skipped
  })
  return `${2 * limit!} requests, ${limit} allowed; ${deaths} deaths, ${refreshes} refreshes`
}

const ALERT_ACCOUNTS = 200
const ALERT_ROUNDS = 100

/** Accounts lose their sign-in and get it back, with a kill -9 each time. */
export async function alertTests({ scale }: SoakContext): Promise<string> {
  const rounds = Math.ceil(ALERT_ROUNDS * scale)
  const env = { ALERT_ACCOUNTS: String(ALERT_ACCOUNTS), ALERT_ROUNDS: String(rounds) }
  const output = await runTests(['./tests/process/alerts.test.ts'], env)
  return output.split('\n').find((line) => line.includes('raised')) ?? ''
}

/** Returns what the tests printed. */
async function runTests(files: string[], env: Record<string, string>): Promise<string> {
  const child = Bun.spawn(['bun', 'test', '--timeout', '600000', ...files], {
    env: { ...process.env, ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`bun test ended with ${code}\n${out}${err}`)
  return out
}
