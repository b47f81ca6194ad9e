/** `scripts/run.mjs`: the right Bun, an install only after a change, and the exit code of its child. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import manifest from '../../package.json'

const SCRIPT = resolve(import.meta.dir, '../../scripts/run.mjs')
const NODE = Bun.which('node') ?? 'node'

let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sluice-start-'))
  mkdirSync(join(root, 'scripts'))
  cpSync(SCRIPT, join(root, 'scripts/run.mjs'))
  writeFileSync(join(root, 'package.json'), JSON.stringify({ packageManager: 'bun@9.9.9' }))
  writeFileSync(join(root, 'bun.lock'), 'first')
  program('bin/bun', fakeBun('9.9.9'))
})

afterEach(() => rmSync(root, { recursive: true }))

test('the first start installs production packages, the second installs nothing', async () => {
  await run(['start'])
  expect(calls()).toEqual(['install --frozen-lockfile --production', 'src/main.ts serve'])
  await run(['start'])
  expect(calls()).toEqual(['src/main.ts serve'])
})

test('the demo installs its dependencies, as the start does', async () => {
  await run(['demo', '--port', '0'])
  expect(calls()).toEqual(['install --frozen-lockfile --production', 'scripts/demo.ts --port 0'])
})

test('a full install serves start too, but not the other way round', async () => {
  await run(['start'])
  calls()
  await run(['test'])
  expect(calls()).toEqual(['install --frozen-lockfile', 'scripts/test.ts'])
  await run(['start'])
  expect(calls()).toEqual(['src/main.ts serve'])
})

test('a changed lockfile is installed before anything runs', async () => {
  await run(['test'])
  calls()
  writeFileSync(join(root, 'bun.lock'), 'second')
  await run(['test'])
  expect(calls()).toEqual(['install --frozen-lockfile', 'scripts/test.ts'])
})

test('a failed install starts nothing, is reported, and retried', async () => {
  const failed = await run(['start'], { FAIL: 'install' })
  expect(failed.exitCode).toBe(1)
  expect(failed.stderr).toContain('sluice: The packages could not be installed')
  expect(failed.stderr).not.toContain('    at ')
  expect(calls()).toEqual(['install --frozen-lockfile --production'])
  await run(['start'])
  expect(calls()).toEqual(['install --frozen-lockfile --production', 'src/main.ts serve'])
})

test('arguments and the exit code are passed on', async () => {
  const { exitCode } = await run(['test', 'unit', '--flag'], { FAIL: 'scripts/test.ts' })
  expect(exitCode).toBe(7)
  expect(calls().at(-1)).toBe('scripts/test.ts unit --flag')
})

test('another version on PATH is skipped, and npx runs once', async () => {
  program('bin/bun', fakeBun('9.9.8'))
  program('fetched/bun', fakeBun('9.9.9'))
  program('bin/npx', `echo "npx $*" >> "$ROOT/calls"; echo "$ROOT/fetched/bun"`)
  await run(['start'])
  expect(calls()).toEqual([
    'npx --yes bun@9.9.9 --print process.execPath',
    'install --frozen-lockfile --production',
    'src/main.ts serve',
  ])
  await run(['start'])
  expect(calls()).toEqual(['src/main.ts serve'])
})

test('a Bun that npx unpacked earlier is used without running npx', async () => {
  program('bin/bun', fakeBun('9.9.8'))
  program('home/.npm/_npx/0123abcd/node_modules/@oven/bun-linux-x64/bin/bun', fakeBun('9.9.9'))
  await run(['start'])
  expect(calls().at(-1)).toBe('src/main.ts serve')
})

test('without the pinned Bun and without npx the message says what to install', async () => {
  rmSync(join(root, 'bin/bun'))
  const { exitCode, stderr } = await run(['start'])
  expect(exitCode).toBe(1)
  expect(stderr).toContain('npm install --global bun@9.9.9')
  expect(stderr).not.toContain('    at ')
})

test.each([[[]], [['deploy']], [['toString']]])('%j prints the usage', async (args) => {
  const { exitCode, stderr } = await run(args)
  expect(exitCode).toBe(1)
  expect(stderr).toContain('Usage: node scripts/run.mjs start|sluice|demo|build|release|test')
})

test.each(['SIGTERM', 'SIGINT'] as const)('%s reaches the server, which exits gracefully', async (signal) => {
  const child = start(['start'], { WAIT: 'yes' })
  const reader = child.stdout.getReader()
  const nextLine = async () => new TextDecoder().decode((await reader.read()).value).trim()
  expect(await nextLine()).toBe('listening')
  child.kill(signal)
  expect(await nextLine()).toBe('drained')
  expect(await child.exited).toBe(0)
})

/** npm runs a script as `sh -c`, and Windows has no `exec`: a shell replaces itself with the last command by itself. */
test.each(Object.entries(manifest.scripts).filter(([, script]) => script.startsWith('node ')))(
  'npm run %s becomes node itself, so that it receives the signals',
  async (_name, script) => {
    program('bin/node', 'ps -o args= -p $$')
    const child = Bun.spawn(['sh', '-c', script], { env: { PATH: `${root}/bin:${process.env.PATH}` }, stdout: 'pipe' })
    expect(await new Response(child.stdout).text()).toBe(`/bin/sh ${root}/bin/node ${script.slice('node '.length)}\n`)
    expect(await child.exited).toBe(0)
  },
)

test('no npm script uses a shell built-in that Windows lacks', () => {
  expect(Object.values(manifest.scripts).filter((script) => script.includes('exec '))).toEqual([])
})

/** Writes its arguments, and behaves as `FAIL` and `WAIT` say. */
function fakeBun(version: string): string {
  return `
    if [ "$1" = --version ]; then echo ${version}; exit; fi
    echo "$*" >> "$ROOT/calls"
    [ "$1" = "$FAIL" ] && exit 7
    if [ "$1" = src/main.ts ] && [ -n "$WAIT" ]; then
      trap 'echo drained; exit 0' TERM INT
      echo listening
      while :; do sleep 0.01; done
    fi
    exit 0`
}

function program(path: string, script: string): void {
  const full = join(root, path)
  mkdirSync(resolve(full, '..'), { recursive: true })
  writeFileSync(full, `#!/bin/sh\n${script}\n`)
  chmodSync(full, 0o755)
}

/** Started from another folder, because the script must not depend on the working directory. */
function start(args: string[], env: Record<string, string> = {}) {
  return Bun.spawn([NODE, join(root, 'scripts/run.mjs'), ...args], {
    cwd: tmpdir(),
    env: { PATH: `${join(root, 'bin')}:${coreutils()}`, HOME: join(root, 'home'), ROOT: root, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function run(args: string[], env: Record<string, string> = {}) {
  const child = start(args, env)
  const [stderr, exitCode] = await Promise.all([new Response(child.stderr).text(), child.exited])
  return { stderr, exitCode }
}

/** A folder with `sleep` but without the real bun and npx, which commonly share one with it. */
function coreutils(): string {
  const folder = join(root, 'coreutils')
  program('coreutils/sleep', `exec ${Bun.which('sleep')} "$@"`)
  return folder
}

/** The calls since the last read. */
function calls(): string[] {
  const path = join(root, 'calls')
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  rmSync(path)
  return lines
}
