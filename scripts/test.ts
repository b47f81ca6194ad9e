/** `npm test`: every layer of tests, one line each, and the sum as the plain last line. */
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { inLanes } from '../src/lib/lanes.ts'
import { CHROMIUM, ensureProgram, findProgram } from './programs.ts'

const ROOT = resolve(import.meta.dir, '..')

/** A layer that hangs, or a file of one with lanes, is killed, its output shown, and counted as failed. A slow machine must not reach it. */
const LAYER_TIMEOUT_MS = 900_000
/** Of one test: many start processes, which on a busy machine take seconds. */
const TEST_TIMEOUT_MS = 30_000

/** Folders below `tests/` that are layers of their own; every other test is in `unit`. */
const FOLDER_LAYERS = ['spec', 'process', 'browser', 'clients'] as const
/** Two run side by side, in this order: the quickest answers first, then the longest, so that both lanes end together. */
const ORDER = ['types', 'lint', 'browser', 'process', 'unit', 'clients', 'spec'] as const
type LayerName = (typeof ORDER)[number]

/** Folders with a package of their own, so that `npm start` never installs a browser driver or a client. */
const PACKAGES = ['tests/browser', 'tests/clients']

interface Counts {
  passed: number
  failed: number
  skipped: number
}

interface Report extends Counts {
  /** Shown when something failed, without what passed. */
  output: string
}

/** A layer answers with its report, or with the reason why it did not run. */
const LAYERS: Record<LayerName, () => Promise<Report | string>> = {
  types: () => oneTest(['node_modules/.bin/tsc', '--noEmit']),
  lint,
  unit: () => bunTest('unit'),
  spec: () => bunTest('spec'),
  process: () => bunTest('process'),
  browser: browserTests,
  clients: () => bunTest('clients'),
}

/**
 * The counts in the closing lines of `bun test`. A run that ended badly without naming a failed test
 * (a file that could not be loaded, an error between tests, a crash) counts as one failure.
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

/** What a layer that failed printed, without the tests that passed: of hundreds of lines these are what has to be found. */
export function withoutPassed(output: string): string {
  return output
    .split('\n')
    .filter((line) => !line.startsWith('(pass) '))
    .join('\n')
    .trimEnd()
}

/** What tests say to whoever runs them, also when all is well: lines that begin with `note: `. */
export function notesIn(output: string): string[] {
  return output.split('\n').filter((line) => line.startsWith('note: '))
}

/** Which layer a test file belongs to, by its first folder below `tests/`. */
export function layerOf(path: string): string {
  const folder = path.split('/')[1] ?? ''
  return FOLDER_LAYERS.find((layer) => layer === folder) ?? 'unit'
}

/** The plain last line. */
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
  // Here once, because layers side by side would all install it.
  await ensureProgram(CHROMIUM, { isBest: true })
  const chosen = ORDER.filter((name) => only.length === 0 || only.includes(name))
  await inLanes(chosen, 2, async (name) => add(total, await runLayer(name)))
  console.log(closingLine(total))
  process.exit(total.failed > 0 ? 1 : 0)
}

/** Offline and in milliseconds when nothing changed. Counts only where it fails: it is no test, but nothing works without it. */
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

async function runLayer(name: LayerName): Promise<Counts> {
  const startedNs = Bun.nanoseconds()
  const report = await LAYERS[name]()
  const seconds = ((Bun.nanoseconds() - startedNs) / 1e9).toFixed(1)
  if (typeof report === 'string') {
    console.log(`${name.padEnd(8)} NOT RUN: ${report}`)
    return { passed: 0, failed: 0, skipped: 0 }
  }
  if (report.failed > 0) console.log(withoutPassed(report.output))
  else for (const note of notesIn(report.output)) console.log(note)
  console.log(`${name.padEnd(8)} ${closingLine(report)} in ${seconds} s`)
  return report
}

async function lint(): Promise<Report> {
  const [biome, guards] = await Promise.all([
    command(['node_modules/.bin/biome', 'check', '.']),
    command([process.execPath, 'scripts/guards.ts']),
  ])
  const failed = biome.exitCode !== 0 || guards.exitCode !== 0
  return asOneTest(failed, biome.output + guards.output)
}

async function browserTests(): Promise<Report | string> {
  if (testFiles('browser').length === 0 || findProgram(CHROMIUM)) return bunTest('browser', 2)
  const reason = 'no Chromium on this machine; install chromium and run again'
  return process.env.CI === 'true' ? asOneTest(true, reason) : reason
}

/** The files of a layer in one run, or, where `lanes` says how many, one after another in each lane. */
async function bunTest(layer: LayerName, lanes?: number): Promise<Report | string> {
  const files = testFiles(layer)
  if (files.length === 0) return 'it has no test file yet'
  const total: Report = { passed: 0, failed: 0, skipped: 0, output: '' }
  const play = async (some: string[]) => {
    const { output, exitCode } = await command([process.execPath, 'test', `--timeout=${TEST_TIMEOUT_MS}`, ...some])
    add(total, readCounts(output, exitCode))
    total.output += output
  }
  if (lanes === undefined) await play(files)
  else await inLanes(files, lanes, (file) => play([file]))
  return total
}

function testFiles(layer: string): string[] {
  const found = [...new Bun.Glob('tests/**/*.test.{ts,tsx}').scanSync({ cwd: ROOT })]
  const own = found.filter((path) => !path.includes('/node_modules/') && layerOf(path) === layer)
  return own.sort().map((path) => `./${path}`)
}

async function oneTest(argv: string[]): Promise<Report> {
  const { output, exitCode } = await command(argv)
  return asOneTest(exitCode !== 0, output)
}

function asOneTest(hasFailed: boolean, output: string): Report {
  return { passed: hasFailed ? 0 : 1, failed: hasFailed ? 1 : 0, skipped: 0, output }
}

/** Both streams go to one file, which keeps their order; a pipe each would not. */
async function command(argv: string[], cwd = ROOT): Promise<{ output: string; exitCode: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  try {
    const path = join(folder, 'output')
    const file = openSync(path, 'a')
    const child = Bun.spawn(argv, {
      cwd,
      stdio: ['ignore', file, file],
      timeout: LAYER_TIMEOUT_MS,
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
