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

async function runTests(files: string[], env: Record<string, string>): Promise<void> {
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
}
