/** The totals of the test runner: a failure must never be read as a pass. */
import { describe, expect, test } from 'bun:test'
import { closingLine, deal, getLayer, getNotes, readCounts, withoutPassed } from '../../scripts/test.ts'

const CLOSING = ' 12 pass\n 2 skip\n 1 todo\n 3 fail\n 40 expect() calls\nRan 18 tests across 2 files. [9.00ms]\n'

describe('the closing lines of bun test', () => {
  test('are added up; todo tests count as skipped', () => {
    expect(readCounts(`bun test v1\n\na.test.ts:\n${CLOSING}`, 1)).toEqual({ passed: 12, failed: 3, skipped: 3 })
  })

  test('take precedence over earlier output that looks like them', () => {
    expect(readCounts(` 99 pass\n 99 fail\n${CLOSING}`, 1)).toMatchObject({ passed: 12, failed: 3 })
  })

  test.each([
    ['a crash without any closing line', 'panic: Segmentation fault', 139],
    ['an error between tests', ' 5 pass\n 0 fail\n 1 error\n', 1],
  ])('%s is one failure', (_name, output, exitCode) => {
    expect(readCounts(output, exitCode).failed).toBe(1)
  })

  test('of a successful run have no failure', () => {
    expect(readCounts(' 5 pass\n 0 fail\n', 0)).toEqual({ passed: 5, failed: 0, skipped: 0 })
  })
})

test('the last line names skipped tests only if there are any', () => {
  expect(closingLine({ passed: 3, failed: 0, skipped: 0 })).toBe('3 passed, 0 failed')
  expect(closingLine({ passed: 3, failed: 1, skipped: 2 })).toBe('3 passed, 1 failed, 2 skipped')
})

test('notes of a passing test are shown, and nothing else is', () => {
  expect(getNotes(`a.test.ts:\nnote: it took 5 s\n(pass) note: nothing\n${CLOSING}`)).toEqual(['note: it took 5 s'])
})

test('failures of a failed run are shown with their errors, and passes are not', () => {
  const output = `a.test.ts:\n(pass) adds [1.00ms]\nerror: expected 2\n    at a.test.ts:9\n(fail) subtracts [2.00ms]\n\n${CLOSING}`
  expect(withoutPassed(output)).toBe(
    `a.test.ts:\nerror: expected 2\n    at a.test.ts:9\n(fail) subtracts [2.00ms]\n\n${CLOSING}`.trimEnd(),
  )
})

test.each([
  ['tests/spec/keys.test.ts', 'spec'],
  ['tests/process/binary.test.ts', 'process'],
  ['tests/proxy/process.test.ts', 'unit'],
  ['tests/architecture.test.ts', 'unit'],
])('%s runs in the layer %s', (path, layer) => {
  expect(getLayer(path)).toBe(layer)
})

test('every file is in one share, and slow files are apart', () => {
  const slow = ['tests/browser/axe.test.ts', 'tests/browser/people.test.ts', 'tests/spec/5-mutation-matrix.test.ts']
  const files = [...slow, ...Array.from({ length: 20 }, (_, n) => `tests/x/${n}.test.ts`)]
  const shares = deal(files, 3)
  expect(shares.flatMap((share) => share.files).toSorted()).toEqual(files.toSorted())
  expect(shares.map((share) => share.files.filter((path) => slow.includes(path)).length)).toEqual([1, 1, 1])
})
