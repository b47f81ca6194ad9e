/** One server per folder, also across processes and after a crash. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { acquireFolderLock, FolderLockedError, JOBS_LOCK, processLock, tryLock } from '../../db/lock.ts'

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

const aFolder = () => {
  const dir = mkdtempSync(join(tmpdir(), 'lock-'))
  cleanUps.push(() => rmSync(dir, { recursive: true }))
  return dir
}

const refusal = (dir: string) => {
  try {
    acquireFolderLock(dir).release()
    return null
  } catch (error) {
    return error
  }
}

/** Another process that takes the lock of `dir`, or one by name, and prints `held`, or the error. */
const aProcess = (dir: string, name?: string) => {
  const path = new URL('../../db/lock.ts', import.meta.url).pathname
  const script = `
    const { acquireFolderLock, tryLock } = await import(${JSON.stringify(path)})
    try {
      const name = ${JSON.stringify(name ?? null)}
      globalThis.held = name === null ? acquireFolderLock(${JSON.stringify(dir)}) : tryLock(${JSON.stringify(dir)}, name)
      console.log(globalThis.held ? 'held' : 'denied')
      setInterval(() => {}, 1000)
    } catch (error) {
      console.log(error.message)
    }`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' })
  cleanUps.unshift(() => child.kill('SIGKILL'))
  const firstLine = async () => {
    for await (const chunk of child.stdout) return new TextDecoder().decode(chunk).trim()
    return ''
  }
  return { child, firstLine }
}

test('a second lock in this process is rejected until release', () => {
  const dir = aFolder()
  const lock = acquireFolderLock(dir)
  expect(refusal(dir)).toBeInstanceOf(FolderLockedError)
  expect(refusal(dir)).toMatchObject({ pid: process.pid })
  lock.release()
  lock.release()
  expect(refusal(dir)).toBeNull()
})

test('the lock files are private', () => {
  const dir = aFolder()
  cleanUps.unshift(acquireFolderLock(dir).release)
  for (const name of ['sluice.lock', 'sluice.pid']) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600)
})

/** Everything in the folder that others can read. */
const readableByOthers = (dir: string) => readdirSync(dir).filter((name) => statSync(join(dir, name)).mode & 0o077)

test('every file beside the lock is private, its journal too', () => {
  const dir = aFolder()
  cleanUps.unshift(acquireFolderLock(dir).release)
  expect(readdirSync(dir)).toContain('sluice.lock-journal')
  expect(readableByOthers(dir)).toEqual([])
})

test('files that an earlier release left readable become private', () => {
  const dir = aFolder()
  for (const name of ['sluice.lock', 'sluice.lock-journal', 'sluice.pid'])
    writeFileSync(join(dir, name), '', { mode: 0o644 })
  cleanUps.unshift(acquireFolderLock(dir).release)
  expect(readableByOthers(dir)).toEqual([])
})

test('another process is rejected with the pid of the holder', async () => {
  const dir = aFolder()
  cleanUps.unshift(acquireFolderLock(dir).release)
  expect(refusal(dir)).toBeInstanceOf(FolderLockedError)
  expect(await aProcess(dir).firstLine()).toBe(`Another server (process ${process.pid}) is using the folder ${dir}.`)
})

test('a killed holder frees the folder, whatever files it left', async () => {
  const dir = aFolder()
  const { child, firstLine } = aProcess(dir)
  expect(await firstLine()).toBe('held')
  expect(refusal(dir)).toMatchObject({ pid: child.pid })
  child.kill('SIGKILL')
  await child.exited
  expect(refusal(dir)).toBeNull()
})

test('a missing folder is not reported as locked', () => {
  const error = refusal(join(aFolder(), 'none'))
  expect(error).toBeInstanceOf(Error)
  expect(error).not.toBeInstanceOf(FolderLockedError)
})

test('a named lock is held once, across processes, until its holder dies', async () => {
  const dir = aFolder()
  const { child, firstLine } = aProcess(dir, 'refresh:acc_1')
  expect(await firstLine()).toBe('held')
  expect(tryLock(dir, 'refresh:acc_1')).toBeNull()
  const other = tryLock(dir, 'refresh:acc_2')
  expect(other).not.toBeNull()
  expect(tryLock(dir, 'refresh:acc_2')).toBeNull()
  other?.release()
  child.kill('SIGKILL')
  await child.exited
  const lock = tryLock(dir, 'refresh:acc_1')
  expect(lock).not.toBeNull()
  lock?.release()
})

test('the folder counts as in use while a process still runs its jobs', () => {
  const dir = aFolder()
  const jobs = tryLock(dir, JOBS_LOCK)
  expect(refusal(dir)).toBeInstanceOf(FolderLockedError)
  jobs?.release()
  expect(refusal(dir)).toBeNull()
})

test('the folder counts as in use while any server process runs, whose supervisor may be gone', async () => {
  const dir = aFolder()
  acquireFolderLock(dir).release()
  writeFileSync(join(dir, 'sluice.pid'), '1\n')
  const { child, firstLine } = aProcess(dir, processLock(12))
  expect(await firstLine()).toBe('held')
  expect(refusal(dir)).toBeInstanceOf(FolderLockedError)
  expect(refusal(dir)).toMatchObject({ pid: null })
  child.kill('SIGKILL')
  await child.exited
  expect(refusal(dir)).toBeNull()
})

test('names cannot leave the folder, and the files of named locks are private', () => {
  const dir = aFolder()
  cleanUps.unshift(() => lock?.release())
  const lock = tryLock(dir, '../../refresh:a/b')
  expect(readdirSync(dir)).toEqual(['locks'])
  expect(readableByOthers(join(dir, 'locks'))).toEqual([])
})
