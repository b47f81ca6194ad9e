/** The key is created once and kept private. */
import { afterEach, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadOrCreateKey } from '../../src/lib/key-file.ts'
import { seededRandom, systemRandom } from '../../src/lib/random.ts'

const dirs: string[] = []
const aPath = () => {
  const dir = mkdtempSync(join(tmpdir(), 'key-'))
  dirs.push(dir)
  return join(dir, 'encryption.key')
}
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true })
})

test('is created private and read back unchanged', () => {
  const path = aPath()
  const key = loadOrCreateKey(path, seededRandom(1))
  expect(key).toHaveLength(32)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readFileSync(path, 'utf8')).toMatch(/^[\w-]{43}\n$/)
  expect(loadOrCreateKey(path, seededRandom(2))).toEqual(key)
})

test('permissions that were loosened are tightened', () => {
  const path = aPath()
  const key = loadOrCreateKey(path, systemRandom)
  chmodSync(path, 0o644)
  expect(loadOrCreateKey(path, systemRandom)).toEqual(key)
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test.each(['', 'short', '!'.repeat(43), 'A'.repeat(44), `${'A'.repeat(42)}=`])(
  'content %p is rejected and not replaced',
  (content) => {
    const path = aPath()
    writeFileSync(path, content, { mode: 0o600 })
    expect(() => loadOrCreateKey(path, systemRandom)).toThrow('32 bytes')
    expect(readFileSync(path, 'utf8')).toBe(content)
  },
)

test('a key that cannot be written completely leaves no file, so that the next attempt creates one', () => {
  const path = aPath()
  const failing = { ...systemRandom, bytes: () => null as never } // as: writing it throws, as on a full disk
  expect(() => loadOrCreateKey(path, failing)).toThrow('could not be written')
  expect(loadOrCreateKey(path, systemRandom)).toHaveLength(32)
})

test('a missing folder is named', () => {
  expect(() => loadOrCreateKey(join(aPath(), 'no', 'key'), systemRandom)).toThrow('could not be created')
})
