/** `npm test`: runs all layers of tests, prints one line for each, and the totals as the last line. */
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { inLanes } from '../src/lib/lanes.ts'
import { CHROMIUM, ensureProgram, findProgram, POSTGRES } from './programs.ts'
import measuredSeconds from './test-seconds.json'

const ROOT = resolve(import.meta.dir, '..')

/** A run that takes longer is killed, its output shown, and counted as failed. Generous enough for slow machines. */
const RUN_TIMEOUT_MS = 900_000
/** Limit for one test. Many start processes, which takes seconds on a busy machine. */
const TEST_TIMEOUT_MS = 120_000

/** Folders in `tests/` that are layers of their own. All other tests belong to `unit`. */
const FOLDER_LAYERS = ['spec', 'process', 'browser', 'clients', 'statements'] as const
/** Parallel runs: one more than there are processors, because tests of processes and pages also wait. */
const LANES = Math.min(availableParallelism() + 1, 4)
type LayerName = 'types' | 'lint' | 'unit' | 'postgres' | (typeof FOLDER_LAYERS)[number]

/** Measured on two quiet processors, for files that take 10 s or more. It only decides the order, so it may be old. */
const SECONDS: Readonly<Record<string, number>> = measuredSeconds
/** A file that is not listed. */
const USUAL_SECONDS = 2

/** Layers whose tests start servers. */
const SERVER_LAYERS: readonly string[] = ['process', 'browser', 'clients']

/** Folders with a package of their own, so that `npm start` never installs a browser driver or a client. */
const PACKAGES = ['tests/browser', 'tests/clients']

interface Counts {
  passed: number
  failed: number
  skipped: number
}

interface Report extends Counts {
  /** Shown when something failed, without the output of passed tests. */
  output: string
}

interface Run<R extends Counts = Report> {
  /** About how long it takes. */
  seconds: number
  start: () => Promise<R>
}

/** A layer: its runs, which may be parallel, or the reason why there are none. */
type Runs = Run[] | string
/** Started first, for an early answer. */
const FIRST = Number.POSITIVE_INFINITY

const LAYERS: Record<LayerName, () => Runs> = {
  types: () => [{ seconds: FIRST, start: () => oneTest(['node_modules/.bin/tsc', '--noEmit']) }],
  lint: () => [{ seconds: FIRST, start: lint }],
  unit: () => bunTests('unit', 6),
  postgres: postgresTests,
  spec: () => bunTests('spec', 3),
  process: () => bunTests('process', 6),
  browser: browserTests,
  clients: () => bunTests('clients', 4),
  statements: () => bunTests('statements', 1),
}

/**
 * The counts in the closing lines of `bun test`. A run that failed without naming a failed test (a file that could not
 * be loaded, an error between tests, a crash) counts as one failure.
 */
export function readCounts(output: string, exitCode: number): Counts {
  const last = (word: string) => Number([...output.matchAll(new RegExp(`^ *(\\d+) ${word}$`, 'gm'))].at(-1)?.[1] ?? 0)
  const failed = last('fail')
  return {
    passed: last('pass'),
    failed: failed === 0 && exitCode !== 0 ? 1 : failed,
    skipped: last('skip') + last('todo'),
  }
}

/** The output of a failed layer without the tests that passed, which would hide the failures. */
export function withoutPassed(output: string): string {
  return output
    .split('\n')
    .filter((line) => !line.startsWith('(pass) '))
    .join('\n')
    .trimEnd()
}

/** Messages of tests to the developer, shown even on success: lines that begin with `note: `. */
export function getNotes(output: string): string[] {
  return output.split('\n').filter((line) => line.startsWith('note: '))
}

/** The layer of a test file, by its first folder in `tests/`. */
export function getLayer(path: string): string {
  const folder = path.split('/')[1] ?? ''
  return FOLDER_LAYERS.find((layer) => layer === folder) ?? 'unit'
}

/** The last line, without colours. */
export function closingLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

async function main(): Promise<void> {
  const only = process.argv.slice(2)
  const unknown = only.filter((name) => !Object.hasOwn(LAYERS, name))
  if (unknown.length > 0) {
    console.error(`No such layer: ${unknown.join(', ')}. The layers are ${Object.keys(LAYERS).join(', ')}.`)
    process.exit(2)
  }
  const total = await installPackages()
  // Installed here once, because parallel layers would all install it.
  await ensureProgram(CHROMIUM, { isBest: true })
  await ensureProgram(POSTGRES)
  const layers = Object.keys(LAYERS) as LayerName[] // as: declared with these keys
  const chosen = layers.filter((name) => only.length === 0 || only.includes(name))
  const folder = mkdtempSync(join(tmpdir(), 'sluice-run-'))
  if (chosen.includes('unit')) {
    forTests.SLUICE_TEST_STATEMENTS = join(folder, 'statements')
    mkdirSync(forTests.SLUICE_TEST_STATEMENTS)
  }
  if (chosen.some((name) => SERVER_LAYERS.includes(name))) built = buildExecutable(join(folder, 'executable', 'sluice'))
  // The longest first, so that all lanes end together.
  const runs = chosen
    .filter((name) => name !== 'statements')
    .flatMap(getRuns)
    .toSorted((a, b) => b.seconds - a.seconds)
  await inLanes(runs, LANES, async ({ start }) => add(total, await start()))
  add(total, await built)
  // Last, because it reads what the others have recorded.
  if (chosen.includes('statements')) for (const { start } of getRuns('statements')) add(total, await start())
  rmSync(folder, { recursive: true })
  console.log(closingLine(total))
  process.exit(total.failed > 0 ? 1 : 0)
}

/**
 * Works offline and takes milliseconds when nothing changed. Counted only if it fails: it is not a test, but nothing
 * works without it.
 */
async function installPackages(): Promise<Counts> {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 }
  for (const folder of PACKAGES.filter((one) => existsSync(join(ROOT, one, 'package.json')))) {
    const { output, exitCode } = await command([process.execPath, 'install', '--frozen-lockfile'], join(ROOT, folder))
    if (exitCode === 0) continue
    console.log(`${output.trimEnd()}\ninstall  the packages of ${folder} could not be installed`)
    counts.failed += 1
  }
  return counts
}

/**
 * The server that tests start (`tests/support/spawn.ts`), built from the sources of this run. If that fails, the checkout
 * is started instead, and the run has failed.
 */
async function buildExecutable(outfile: string): Promise<Counts> {
  mkdirSync(dirname(outfile))
  const { output, exitCode } = await command([process.execPath, 'scripts/build.ts', '--outfile', outfile])
  if (exitCode === 0) forTests.SLUICE_TEST_EXECUTABLE = outfile
  else console.log(`${output.trimEnd()}\nbuild    the executable for the tests could not be built`)
  return { passed: 0, failed: exitCode === 0 ? 0 : 1, skipped: 0 }
}

/** The runs of a layer. The last one to end prints the total. */
function getRuns(name: LayerName): Run<Counts>[] {
  const runs = LAYERS[name]()
  if (typeof runs === 'string') {
    console.log(`${name.padEnd(8)} NOT RUN: ${runs}`)
    return []
  }
  const layer: Report = { passed: 0, failed: 0, skipped: 0, output: '' }
  let left = runs.length
  let took = 0
  return runs.map(({ seconds, start }) => ({
    seconds,
    start: async () => {
      const startedNs = Bun.nanoseconds()
      const report = await start()
      took += (Bun.nanoseconds() - startedNs) / 1e9
      add(layer, report)
      layer.output += report.output
      left -= 1
      if (left === 0) print(name, layer, took)
      return report
    },
  }))
}

function print(name: LayerName, report: Report, seconds: number): void {
  if (report.failed > 0) console.log(withoutPassed(report.output))
  else for (const note of getNotes(report.output)) console.log(note)
  console.log(`${name.padEnd(8)} ${closingLine(report)} in ${seconds.toFixed(1)} s`)
}

async function lint(): Promise<Report> {
  const [biome, guards] = await Promise.all([
    command(['node_modules/.bin/biome', 'check', '.']),
    command([process.execPath, 'scripts/guards.ts']),
  ])
  const failed = biome.exitCode !== 0 || guards.exitCode !== 0
  return asOneTest(failed, biome.output + guards.output)
}

/** One file per run: Chromium takes far longer than a new process. */
function browserTests(): Runs {
  if (findProgram(CHROMIUM)) return bunTests('browser', testFiles('browser').length)
  return notRun('no Chromium on this machine; install chromium and run again')
}

/** Unit tests once more, with PostgreSQL as their database: those that neither use SQLite itself nor a manual clock. */
const ON_POSTGRES = [
  ...['accounts', 'audit-verify', 'catalog', 'counted-requests', 'firewall'].map(
    (name) => `tests/model/${name}.test.ts`,
  ),
  ...['body', 'gates', 'missing-permission'].map((name) => `tests/http/${name}.test.ts`),
  'tests/admin/settings.test.ts',
]

function postgresTests(): Runs {
  if (findProgram(POSTGRES)) return [{ seconds: 60, start: () => bunTest(ON_POSTGRES, { SLUICE_TEST_DB: 'postgres' }) }]
  return notRun('no PostgreSQL on this machine; install postgresql and run again')
}

/** On CI everything must be tested. */
const notRun = (reason: string): Runs =>
  process.env.CI === 'true' ? [{ seconds: FIRST, start: async () => asOneTest(true, reason) }] : reason

/** The files of a layer in `count` runs. */
function bunTests(layer: LayerName, count: number): Runs {
  const files = testFiles(layer)
  if (files.length === 0) return 'it has no test file yet'
  return deal(files, Math.min(count, files.length)).map((share) => ({
    seconds: share.seconds,
    start: async () => {
      if (SERVER_LAYERS.includes(layer)) await built
      return bunTest(share.files)
    },
  }))
}

async function bunTest(files: readonly string[], env: Record<string, string> = {}): Promise<Report> {
  const argv = [process.execPath, 'test', `--timeout=${TEST_TIMEOUT_MS}`, ...files.map((path) => `./${path}`)]
  const { output, exitCode } = await command(argv, ROOT, { ...forTests, ...env })
  return { ...readCounts(output, exitCode), output }
}

/** The slowest file first, each to the share that has least to do. */
export function deal(files: readonly string[], count: number): { files: string[]; seconds: number }[] {
  const shares = Array.from({ length: count }, () => ({ files: [] as string[], seconds: 0 }))
  const getSeconds = (path: string) => SECONDS[path] ?? USUAL_SECONDS
  for (const path of files.toSorted((a, b) => getSeconds(b) - getSeconds(a))) {
    const share = shares.reduce((least, one) => (one.seconds < least.seconds ? one : least))
    share.files.push(path)
    share.seconds += getSeconds(path)
  }
  return shares
}

/** The executable's build, which runs beside the first layers. */
let built: Promise<Counts> = Promise.resolve({ passed: 0, failed: 0, skipped: 0 })

/** The last compiler tier costs a test process more than it saves: 6 to 12 % of the processor time (Bun 1.4.5). */
const forTests: Record<string, string> = { BUN_JSC_useFTLJIT: '0' }

function testFiles(layer: string): string[] {
  const found = [...new Bun.Glob('tests/**/*.test.{ts,tsx}').scanSync({ cwd: ROOT })]
  const own = found.filter((path) => !path.includes('/node_modules/') && getLayer(path) === layer)
  return own.sort()
}

async function oneTest(argv: string[]): Promise<Report> {
  const { output, exitCode } = await command(argv)
  return asOneTest(exitCode !== 0, output)
}

function asOneTest(hasFailed: boolean, output: string): Report {
  return { passed: hasFailed ? 0 : 1, failed: hasFailed ? 1 : 0, skipped: 0, output }
}

/** Both streams go to one file, which keeps their order. Two pipes would not. */
async function command(
  argv: string[],
  cwd = ROOT,
  env: Record<string, string> = {},
): Promise<{ output: string; exitCode: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  try {
    const path = join(folder, 'output')
    const file = openSync(path, 'a')
    const child = Bun.spawn(argv, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', file, file],
      timeout: RUN_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    })
    const exitCode = await child.exited
    closeSync(file)
    const killed = child.signalCode ? `\n${argv[0]} was ended by ${child.signalCode}\n` : ''
    return { output: readFileSync(path, 'utf8') + killed, exitCode }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function add(total: Counts, more: Counts): void {
  total.passed += more.passed
  total.failed += more.failed
  total.skipped += more.skipped
}

if (import.meta.main) await main()
