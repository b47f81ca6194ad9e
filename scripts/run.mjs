/** `npm start`, `npm test` and the other npm scripts that need no Bun on PATH: finds the pinned Bun, installs packages, runs the script. */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { constants, homedir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const BUN_NOTE = join(ROOT, 'node_modules', '.cache', 'sluice', 'bun-path')
const INSTALL_STAMP = join(ROOT, 'node_modules', '.sluice-install.json')

/** A full install also serves `start`; a production install does not serve `test`. */
const COMMANDS = {
  start: {
    install: 'production',
    run: ['src/main.ts', 'serve'],
    env: { NODE_ENV: process.env.NODE_ENV ?? 'production' },
  },
  /** `npm run sluice -- accounts import FILE`: the command line, where Bun may not be on PATH. */
  sluice: { install: 'production', run: ['src/main.ts'], env: {} },
  demo: { install: 'production', run: ['scripts/demo.ts'], env: {} },
  build: { install: 'production', run: ['scripts/build.ts'], env: {} },
  release: { install: 'production', run: ['scripts/release.ts'], env: {} },
  test: { install: 'all', run: ['scripts/test.ts'], env: {} },
}

main()

function main() {
  const [name = '', ...rest] = process.argv.slice(2)
  if (!Object.hasOwn(COMMANDS, name)) fail(`Usage: node scripts/run.mjs ${Object.keys(COMMANDS).join('|')} [arguments]`)
  const command = COMMANDS[name]
  const bun = findBun(pinnedVersion())
  installIfChanged(bun, command.install)
  handOver(bun, [...command.run, ...rest], command.env)
}

function pinnedVersion() {
  const { packageManager } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const version = /^bun@(\d+\.\d+\.\d+)/.exec(packageManager ?? '')?.[1]
  return version ?? fail('package.json names no Bun version under "packageManager" (expected "bun@1.2.3").')
}

/** PATH first, then earlier downloads of this script or npx, then the network. */
function findBun(version) {
  const isPinned = (path) => spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout?.trim() === version
  const known = [...onPath(), ...notedBun(), ...npxCache()].find(isPinned)
  if (known) return known

  console.error(`Bun ${version} is not on this machine yet; fetching it with npx (once).`)
  const fetched = [...fetchWithNpx(version), ...npxCache()].find(isPinned)
  if (!fetched) {
    fail(
      `Bun ${version} could not be found or fetched. Install it (npm install --global bun@${version}) and try again.`,
    )
  }
  mkdirSync(dirname(BUN_NOTE), { recursive: true })
  writeFileSync(BUN_NOTE, fetched)
  return fetched
}

function onPath() {
  return (process.env.PATH ?? '').split(delimiter).flatMap((folder) => (folder ? [join(folder, 'bun')] : []))
}

function notedBun() {
  try {
    return [readFileSync(BUN_NOTE, 'utf8').trim()]
  } catch {
    return [] // not downloaded yet
  }
}

/** Where npx unpacks packages. The platform package is listed too, because it works with install scripts disabled. */
function npxCache() {
  const cache = process.env.npm_config_cache ?? join(homedir(), '.npm')
  return entries(join(cache, '_npx')).flatMap((folder) => {
    const modules = join(folder, 'node_modules')
    const platforms = entries(join(modules, '@oven')).map((one) => join(one, 'bin', 'bun'))
    return [join(modules, 'bun', 'bin', 'bun.exe'), ...platforms]
  })
}

function entries(folder) {
  try {
    return readdirSync(folder).map((name) => join(folder, name))
  } catch {
    return [] // the folder does not exist
  }
}

/** `--yes` because npm may be configured with `yes=false`, and would wait for input. */
function fetchWithNpx(version) {
  const { stdout, error } = spawnSync('npx', ['--yes', `bun@${version}`, '--print', 'process.execPath'], {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (error) console.error(`npx could not be started: ${error.message}`)
  const path = stdout?.trim().split('\n').at(-1)
  return path ? [path] : []
}

/** The stamp is removed first and written last, so that an interrupted install is repeated. */
function installIfChanged(bun, mode) {
  const hash = createHash('sha256')
  for (const name of ['bun.lock', 'package.json']) hash.update(readFileSync(join(ROOT, name)))
  const wanted = hash.digest('hex')
  const stamp = readStamp()
  if (stamp.hash === wanted && (stamp.mode === 'all' || stamp.mode === mode)) return

  rmSync(INSTALL_STAMP, { force: true })
  const args = ['install', '--frozen-lockfile', ...(mode === 'production' ? ['--production'] : [])]
  const { status } = spawnSync(bun, args, { cwd: ROOT, stdio: ['ignore', 2, 2] })
  if (status !== 0) fail('The packages could not be installed; the reason is printed above. Nothing was started.')
  mkdirSync(dirname(INSTALL_STAMP), { recursive: true })
  writeFileSync(INSTALL_STAMP, JSON.stringify({ hash: wanted, mode }))
}

function readStamp() {
  try {
    return JSON.parse(readFileSync(INSTALL_STAMP, 'utf8'))
  } catch {
    return {} // never installed, or not by this script
  }
}

/**
 * Runs Bun in the repository's root, the only place where it reads tsconfig.json, and exits with its exit code. The
 * scripts in package.json begin with `exec`, because npm sends signals to its shell, which does not forward them.
 */
function handOver(bun, args, env) {
  let child
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    // Added before the child process starts, so that no signal is lost in between.
    process.on(signal, () => {
      const terminalSentItToBoth = signal === 'SIGINT' && process.stdin.isTTY
      if (!terminalSentItToBoth) child.kill(signal)
    })
  }
  child = spawn(bun, args, { cwd: ROOT, stdio: 'inherit', env: { ...process.env, ...env } })
  child.on('error', (error) => fail(`Bun could not be started: ${error.message}`))
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]))
}

function fail(message) {
  console.error(`sluice: ${message}`)
  process.exit(1)
}
