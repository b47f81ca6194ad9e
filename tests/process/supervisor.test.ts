/** The supervisor of `sluice serve` and its server processes, when one of them dies, stands still or gets a signal. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { bareEnv, childrenOf } from '../support/spawn.ts'
import { until } from '../support/until.ts'

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0).reverse()) cleanUp()
})

/** False for a process that only waits for its parent to read the exit code, too. */
const isRunning = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z'
  } catch {
    return false
  }
}

const killIfRunning = (pid: number): void => {
  if (isRunning(pid)) process.kill(pid, 'SIGKILL')
}

/** `serve` whose first server process has been started, but does not listen yet. */
const startUnready = async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-supervisor-'))
  cleanUps.push(() => rmSync(dataDir, { recursive: true, force: true }))
  const child = Bun.spawn([process.execPath, 'src/main.ts', 'serve'], {
    env: bareEnv({ CODEX_LB_DATA_DIR: dataDir, HOST: '127.0.0.1', PORT: String(freePort()) }),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let worker = 0
  cleanUps.push(() => {
    child.kill('SIGKILL')
    if (worker) killIfRunning(worker)
  })
  await until(() => {
    worker = childrenOf(child.pid)[0] ?? 0
    return worker > 0
  })
  return { child, worker }
}

test('kill -9 of the supervisor while a server process starts ends that process', async () => {
  const { child, worker } = await startUnready()
  child.kill('SIGKILL')
  await until(() => !isRunning(worker))
}, 70_000)

test('SIGTERM while the server starts is a normal end', async () => {
  const { child } = await startUnready()
  child.kill('SIGTERM')
  expect([await child.exited, child.signalCode]).toEqual([0, null])
}, 70_000)

test('a reload while the server starts is ignored, and the log says why', async () => {
  const { child } = await startUnready()
  child.kill('SIGUSR2')
  let text = ''
  for await (const chunk of child.stdout) {
    text += new TextDecoder().decode(chunk)
    if (text.includes('a reload was ignored')) break
  }
  expect(text).toContain('still starting')
}, 70_000)
