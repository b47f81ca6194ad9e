/** Commits of other connections are noticed within a second; our own are not. */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import { watchDatabase } from '../../db/watch.ts'
import { ManualClock } from '../support/clock.ts'

const cleanUps: (() => void)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

const aWatch = (onMoved: () => void) => {
  const dir = mkdtempSync(join(tmpdir(), 'watch-'))
  const server = openDatabase(join(dir, 'a.db')).sqlite
  const command = openDatabase(join(dir, 'a.db')).sqlite
  cleanUps.push(() => {
    server.close()
    command.close()
    rmSync(dir, { recursive: true })
  })
  server.run('CREATE TABLE t (x)')
  const clock = new ManualClock()
  const errors: unknown[] = []
  const stop = watchDatabase({ sqlite: server, clock, onMoved, onError: (error) => errors.push(error) })
  return { server, command, clock, errors, stop }
}

test('reports commits of another connection once, and its own never', async () => {
  let moved = 0
  const { server, command, clock, stop } = aWatch(() => moved++)
  server.run('INSERT INTO t VALUES (1)')
  await clock.advance('2s')
  expect(moved).toBe(0)
  command.run('INSERT INTO t VALUES (2)')
  command.run('INSERT INTO t VALUES (3)')
  expect(moved).toBe(0)
  await clock.advance('3s')
  expect(moved).toBe(1)
  command.run('INSERT INTO t VALUES (4)')
  stop()
  await clock.advance('2s')
  expect(moved).toBe(1)
  expect(clock.pending).toBe(0)
})

test('a reload that fails is reported and tried again', async () => {
  let tries = 0
  const { command, clock, errors } = aWatch(() => {
    tries++
    if (tries === 1) throw new Error('busy')
  })
  command.run('INSERT INTO t VALUES (1)')
  await clock.advance('3s')
  expect(errors).toEqual([new Error('busy')])
  expect(tries).toBe(2)
})
