/** The repository guards find what they are for, and accept ordinary text. */
import { expect, test } from 'bun:test'
import { getFaults } from '../../scripts/guards.ts'

const WORKPLACE = ['', 'work', 'main', 'src'].join('/')
const REGISTRY = ['registry', 'npmjs', 'org'].join('.')

test.each([
  ['a path of a build machine', 'src/a.ts', `const root = '${WORKPLACE}'`],
  ['a registry in a file', 'docs/a.md', `fetched from ${REGISTRY}`],
  ['a host in a lockfile', 'tests/clients/bun.lock', '["zod@4.6.7", "https://mirror.example/zod.tgz", {}]'],
])('%s is found, with its line', (_name, path, line) => {
  const faults = getFaults(path, `first line\n${line}\n`)
  expect(faults).toHaveLength(1)
  expect(faults[0]).toStartWith(`${path}:2: `)
})

test.each([
  ['a URL outside a lockfile', 'src/a.ts', 'const base = "https://chatgpt.com/backend-api"'],
  ['a relative folder', 'docs/a.md', 'see homework/pages and ../work/page'],
  ['a lockfile of the default registry', 'bun.lock', '["zod@4.6.7", "", {}, "sha512-x=="]'],
])('%s is fine', (_name, path, line) => {
  expect(getFaults(path, line)).toEqual([])
})
