/** The structure of the source: allowed imports, what only `main.ts` may use, and size limits. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, resolve } from 'node:path'

const ROOT = resolve(import.meta.dir, '..')

const EVERYTHING = ['src', 'views', 'db']

/**
 * Folder or file → the folders and files it may import values from, itself always included. The longest matching row
 * decides. `MAY_NOT_NAME` says which types a folder may not import.
 */
const MAY_IMPORT: Record<string, string[]> = {
  'src/lib': [],
  'src/errors': ['db/busy', 'src/lib'],
  'src/boot/env': ['src/lib'],
  'src/boot/bindings': [],
  'src/boot/version': [],
  db: ['src/lib'],
  'src/settings': ['db', 'src/errors', 'src/lib'],
  'src/model': ['db', 'src/settings/schema', 'src/errors', 'src/lib'],
  'src/auth': ['src/model', 'src/settings', 'db', 'src/errors', 'src/lib'],
  'src/http': [
    'db/busy',
    'src/auth',
    'src/model/users/permissions',
    'src/model/overview/service-level',
    'src/ops/database-problem',
    'src/ops/folder-paths',
    'src/errors',
    'src/lib',
    'views/shell',
    'views/error',
    'views/confirm',
    'views/bell',
    'views/capture-line',
    'views/words',
    'views/ui',
    'views/assets',
  ],
  'src/upstream': ['src/model', 'src/settings', 'db/busy', 'db/commit', 'src/errors', 'src/lib'],
  'src/proxy': [
    'src/upstream',
    'src/model',
    'src/settings',
    'src/auth/client-key',
    'src/auth/caller',
    'db',
    'src/http/gates',
    'src/http/handlers',
    'src/http/model-path',
    'src/http/body',
    'src/http/query',
    'src/http/cors',
    'src/http/request-context',
    'src/http/upload',
    'src/http/websocket',
    'src/errors',
    'src/lib',
  ],
  'src/ops': ['src/model', 'src/settings', 'db', 'src/upstream/dial', 'src/upstream/headers', 'src/errors', 'src/lib'],
  'src/jobs': ['src/ops', 'src/upstream', 'src/model', 'db', 'src/settings', 'src/errors', 'src/lib'],
  'src/api-docs': ['src/http', 'src/settings/schema', 'src/errors', 'src/lib'],
  'src/admin': [
    'src/api-docs',
    'src/ops',
    'src/upstream',
    'src/model',
    'src/settings',
    'src/auth',
    'src/http',
    'views',
    'db/commit',
    'db/commit-again',
    'src/errors',
    'src/lib',
  ],
  'src/cli': [
    'src/ops',
    'src/model',
    'src/settings',
    'src/auth',
    'src/upstream',
    'src/proxy/pool/pool',
    'src/proxy/ledger/ledger-postgres',
    'src/proxy/replay',
    'src/boot/env',
    'src/boot/reload-report',
    'db',
    'src/errors',
    'src/lib',
  ],
  'src/live': ['src/lib'],
  'src/threads/writer': ['src/threads/writer-worker', 'db/connection'],
  'src/threads/writer-worker': ['src/proxy/ledger', 'db'],
  'src/threads/reader': ['src/threads/reader-lane', 'src/model', 'src/errors', 'src/lib'],
  'src/threads/postgres-reader': ['src/threads/reader', 'src/model', 'src/errors', 'db'],
  'src/threads/reader-lane': ['src/errors', 'src/lib'],
  'src/threads/replayer': ['src/errors', 'src/lib'],
  'src/threads/replay-worker': ['src/proxy/replay', 'db'],
  'src/threads/reader-worker': ['src/model', 'db', 'src/errors', 'src/lib'],
  'src/routes/gateway-routes': ['src/proxy/handlers', 'src/proxy/relay', 'src/admin/health'],
  'src/routes/gateway': ['src/routes/gateway-routes', 'src/http', 'src/errors'],
  'src/routes/managed-routes': ['src/admin', 'src/proxy/relay/ping'],
  'src/routes/people-routes': ['src/admin'],
  'src/routes/dashboard-routes': [
    'src/routes/managed-routes',
    'src/routes/people-routes',
    'src/admin',
    'src/routes/gateway',
    'src/proxy/handlers',
    'src/http/assets',
  ],
  'src/routes/dashboard': ['src/routes/dashboard-routes', 'src/http'],
  'src/routes/every-route': ['src/routes/gateway', 'src/routes/dashboard', 'src/http/route-table'],
  'src/routes/app': ['src/routes/gateway', 'src/routes/dashboard'],
  'src/main': EVERYTHING,
  'src/boot/reload-report': ['src/lib'],
  'src/boot/worker-messages': [],
  'src/boot/worker': ['src/boot/worker-messages', 'src/lib'],
  'src/boot/leader': ['db/lock', 'src/lib'],
  'src/boot/idle-connections': ['src/lib'],
  'src/boot/supervise': EVERYTHING,
  'src/boot/run': EVERYTHING,
  'src/boot/serve': EVERYTHING,
  'src/boot/build-bindings': EVERYTHING,
  'src/boot/views': ['db/commit', 'db/memory-views'],
  'src/boot/other-processes': ['src/model', 'db'],
  'src/boot/server': EVERYTHING,
  'src/boot/served-database': [
    ...['src/boot/served-postgres', 'src/cli', 'src/model', 'src/lib', 'db'],
    ...['src/threads/reader', 'src/threads/replayer', 'src/threads/writer'],
  ],
  'src/boot/served-postgres': [
    ...['src/cli', 'src/model', 'src/lib', 'db'],
    ...['src/threads/postgres-reader', 'src/threads/replayer'],
  ],
  views: [
    'src/model/users/permissions',
    'src/model/accounts/account-words',
    'src/model/imports/words',
    'src/model/reports/report-filters',
    'src/settings/schema',
    'src/settings/setting',
  ],
}

/** Folder → folders of which it imports nothing, not even a type. */
const MAY_NOT_NAME: Record<string, string[]> = {
  'src/errors': ['src/model'],
  'src/model': ['src/proxy', 'src/admin', 'src/http'],
  views: ['src/admin', 'src/api-docs', 'src/http', 'src/proxy'],
}

/** Facts without behavior, which every folder may import. */
const ANYWHERE = ['src/boot/version', 'package']

/** What an idle service does without: pages, what only they read and parse, commands, and ways out that few have. */
const LATE = [
  ...['views', 'src/routes/dashboard', 'src/api-docs', 'src/cli/main', 'commander'],
  ...[
    'src/model/reads',
    'src/model/reports/reports',
    'src/model/keys/key-input',
    'src/model/users/people-input',
    'src/model/audit/audit-log',
  ],
  ...['src/proxy/replay', 'src/model/replay'],
  ...['src/proxy/mcp', '@modelcontextprotocol/sdk'],
  ...['src/upstream/tunnel', 'src/upstream/tunnel-agent', 'src/upstream/proxy-bridge', 'src/upstream/socket'],
  ...['src/upstream/tunnel', 'src/upstream/tunnel-agent', 'src/upstream/proxy-bridge', 'src/upstream/socket'],
  ...['socks', 'ws', 'node:http', 'node:https', 'node:tls'],
]

/** Packages a folder has no business with, by the start of their name. */
const MAY_NOT_USE: Record<string, RegExp> = {
  'src/lib': /^(hono|drizzle-orm|zod|bun:sqlite)/,
  'src/model': /^hono/,
  db: /^hono/,
  views: /^(hono$|drizzle-orm|bun:sqlite)/,
}

/**
 * What makes a test wait, guess or use the network, and the files that may use it. All others get a clock, a random
 * source or a fetch as an argument. Only references to the global count: a parameter called `fetch` is the argument.
 */
const BANNED: { name: string; pattern: RegExp; allowed: string[] }[] = [
  {
    name: 'the wall clock',
    pattern: global('Date\\.now|new Date(?!\\()|new Date\\(\\)'),
    allowed: ['src/lib/clock.ts'],
  },
  { name: 'Math.random', pattern: global('Math\\.random'), allowed: ['src/lib/random.ts'] },
  {
    name: 'crypto.random…',
    pattern: global('crypto\\.(?:random|getRandomValues)|random(?:Bytes|UUID|Int|FillSync)\\('),
    allowed: ['src/lib/random.ts'],
  },
  {
    name: 'a timer',
    pattern: global('set(?:Timeout|Interval|Immediate)\\b|Bun\\.sleep|AbortSignal\\.timeout'),
    allowed: ['src/lib/clock.ts'],
  },
  { name: 'the global fetch', pattern: global('(?:globalThis\\.)?fetch(?=[(,;})]|\\s})'), allowed: [] },
  { name: 'the environment', pattern: global('process\\.env|Bun\\.env'), allowed: ['src/boot/env.ts'] },
]

const MAX_FILE_LINES = 400
const MAX_FUNCTION_LINES = 80

const OPENS_A_BODY = /(=>|\)(: .+)?) \{$/
const CONTROL_FLOW = /^\s*(\} )?(if|for|while|switch|else|catch|try|do)\b/

const SOURCES = getFiles(EVERYTHING)
const TESTS = getFiles(['tests'])

describe('imports follow the layers', () => {
  test('every source file has a row in MAY_IMPORT', () => {
    expect(SOURCES.filter((path) => getRow(path) === undefined)).toEqual([])
  })

  test.each(Object.keys(MAY_IMPORT))('%s imports only what it is allowed to', (row) => {
    const strays = SOURCES.filter((path) => getRow(path) === row).flatMap((path) =>
      getImports(path)
        .filter((target) => !mayImport(row, target))
        .map((target) => `${path} imports ${target}`),
    )
    expect(strays).toEqual([])
  })

  test.each(Object.keys(MAY_NOT_NAME))('%s imports no type of a folder above it', (folder) => {
    const strays = SOURCES.filter((path) => within(withoutExtension(path), folder)).flatMap((path) =>
      getTypeImports(path)
        .filter((target) => MAY_NOT_NAME[folder]?.some((above) => within(target, above)))
        .map((target) => `${path} imports ${target}`),
    )
    expect(strays).toEqual([])
  })

  test('every row is about something that can be imported or exists', () => {
    const targets = Object.values(MAY_IMPORT).flat()
    const isKnown = (name: string) =>
      EVERYTHING.includes(name) || Object.keys(MAY_IMPORT).some((row) => within(name, row))
    expect(targets.filter((name) => !isKnown(name))).toEqual([])
  })
})

describe('lazy modules', () => {
  const atStart = new Set(
    ['src/main.ts', 'src/boot/run.ts', 'src/boot/serve.ts'].flatMap((path) => [...loadedBy(path)]),
  )

  test.each(LATE)('%s is not loaded at the start', (name) => {
    expect([...atStart].filter((one) => within(one, name))).toEqual([])
  })

  test('each of them exists', () => {
    const named = new Set(SOURCES.filter(isCode).flatMap((path) => [withoutExtension(path), ...getImports(path)]))
    expect(LATE.filter((name) => ![...named].some((one) => within(one, name)))).toEqual([])
  })

  test('no dynamic import is in a `try`, where the bundler omits what it cannot find', () => {
    expect(SOURCES.filter(isCode).filter((path) => importsInTry(read(path)).length > 0)).toEqual([])
    const source = [
      'const a = () => import("./b.ts")',
      'try {',
      '  const b = await import("./b.ts")',
      '} catch {}',
    ].join('\n')
    expect(importsInTry(source)).toEqual([3])
  })

  test('a CLI command does not load the server', () => {
    const loaded = loadedBy('src/cli/main.ts')
    expect(
      ['src/boot/server', 'src/routes/gateway', 'src/routes/app', 'views'].filter((name) => loaded.has(name)),
    ).toEqual([])
  })

  test('the modules that serve model requests are loaded at the start', () => {
    for (const name of ['src/proxy/turn/attempts', 'src/model/catalog/pricing', 'hono']) expect(atStart).toContain(name)
  })
})

/** The arguments of each `commit`, and the bodies of functions that get a `tx`. */
const insideCommits = (code: string): string[] => [
  ...[...code.matchAll(/\bcommit(?:<[^>]*>)?\(/g)].map(({ 0: start, index }) =>
    upToClosing(code, index + start.length - 1),
  ),
  ...[...code.matchAll(/\(tx: Tx\b[^)]*\)[^{=]*(?:=>)?\s*\{/g)].map(({ 0: start, index }) =>
    upToClosing(code, index + start.length - 1),
  ),
]

const upToClosing = (code: string, from: number): string => {
  const [open, close] = code[from] === '(' ? '()' : '{}'
  let depth = 0
  for (let at = from; at < code.length; at++) {
    if (code[at] === open) depth++
    if (code[at] === close && --depth === 0) return code.slice(from, at)
  }
  return code.slice(from)
}

describe('restricted access', () => {
  test.each(BANNED)('$name', ({ pattern, allowed }) => {
    const offenders = SOURCES.filter((path) => isCode(path) && path !== 'src/main.ts' && !allowed.includes(path))
    const found = offenders.flatMap((path) => [...getCode(path).matchAll(pattern)].map(([text]) => `${path}: ${text}`))
    expect(found).toEqual([])
  })

  test('a write to the database uses a transaction', () => {
    const outside = SOURCES.filter((path) => isCode(path) && !path.startsWith('db/')).flatMap((path) =>
      [...read(path).matchAll(/\bdb\s*\.(insert|update|delete)\(/g)].map(([text]) => `${path}: ${text}`),
    )
    expect(outside).toEqual([])
  })

  test('a failed statement ends its commit, as it does in PostgreSQL: nothing is caught inside', () => {
    const catching = SOURCES.filter(isCode).flatMap((path) =>
      insideCommits(read(path))
        .filter((text) => /\bcatch\b/.test(text))
        .map((text) => `${path}: ${text.slice(0, 80)}`),
    )
    expect(insideCommits('commit(db, async (tx) => { try {} catch {} })').join()).toContain('catch')
    expect(catching).toEqual([])
  })
})

describe('size limits', () => {
  test('the first line of a file describes it', () => {
    const silent = [...SOURCES, ...TESTS, ...getFiles(['scripts', 'bench'])].filter(
      (path) => isCode(path) && !/^(#!.*\n)?(\/\*\* @jsx.*\n)?\/\*\*[ \n]/.test(read(path)),
    )
    expect(silent).toEqual([])
  })

  test(`no file is longer than ${MAX_FILE_LINES} lines`, () => {
    const long = SOURCES.filter((path) => isCode(path) && read(path).split('\n').length > MAX_FILE_LINES)
    expect(long).toEqual([])
  })

  test(`no function is longer than ${MAX_FUNCTION_LINES} lines`, () => {
    const long = SOURCES.filter(isCode).flatMap((path) =>
      getFunctions(read(path))
        .filter(({ lines }) => lines > MAX_FUNCTION_LINES)
        .map(({ line, lines }) => `${path}:${line} has ${lines} lines`),
    )
    expect(long).toEqual([])
  })

  test('no test is skipped, and none runs exclusively', () => {
    const marked = TESTS.filter(
      (path) => isCode(path) && /\b(test|it|describe)\.(only|skip|todo)\b/.test(getCode(path)),
    )
    expect(marked).toEqual([])
  })
})

describe('the checks detect violations', () => {
  test('use of the global is detected, use of the injected one is not', () => {
    const banned = BANNED.find(({ name }) => name === 'the global fetch')
    const finds = (source: string) => [...bare(source, 'ts').matchAll(banned?.pattern ?? /$^/g)].length
    expect(finds('export const a = () => fetch("https://x")')).toBe(1)
    expect(finds('export const a = () => open({ fetch })')).toBe(1)
    expect(finds('export const a = (fetch: typeof globalThis.fetch) => fetch("https://x")')).toBe(0)
    expect(finds('// fetch(x)\nexport const a = "could not fetch(x)"')).toBe(0)
  })

  test('parsing a date is allowed, reading the current one is not', () => {
    const banned = BANNED.find(({ name }) => name === 'the wall clock')
    const finds = (source: string) => [...bare(source, 'ts').matchAll(banned?.pattern ?? /$^/g)].length
    expect(finds('export const a = new Date(5)')).toBe(0)
    expect(finds('export const a = new Date()')).toBe(1)
    expect(finds('export const a = Date.now()')).toBe(1)
  })

  test('a function is measured from its first line to its closing brace', () => {
    const body = '  call()\n'.repeat(90)
    expect(getFunctions(`export function long(\n  a: string,\n): void {\n${body}}\n`)).toEqual([{ line: 1, lines: 94 }])
    expect(getFunctions(`const long = async (a: string) => {\n${body}}\n`)).toEqual([{ line: 1, lines: 92 }])
    expect(getFunctions(`class A {\n  async long(a: string) {\n  ${body.trim()}\n  }\n}\n`)).toEqual([
      { line: 2, lines: 92 },
    ])
    expect(getFunctions(`const table = {\n${body}}\n\nif (a) {\n${body}}\n`)).toEqual([])
  })

  test('a folder does not match by a prefix of its name', () => {
    expect(mayImport('src/proxy', 'src/auth/client-key')).toBe(true)
    expect(mayImport('src/proxy', 'src/auth/client-keys')).toBe(false)
    expect(mayImport('src/proxy', 'src/admin/accounts')).toBe(false)
    expect(mayImport('src/proxy', 'tests/support/clock')).toBe(false)
    expect(mayImport('src/lib', 'hono')).toBe(false)
    expect(getRow('src/errors.ts')).toBe('src/errors')
    expect(getRow('src/elsewhere/file.ts')).toBeUndefined()
  })
})

function getFiles(folders: string[]): string[] {
  return folders
    .filter((folder) => existsSync(join(ROOT, folder)))
    .flatMap((folder) => [...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: ROOT })])
    .filter((path) => !path.includes('node_modules/'))
    .sort()
}

/** Declarations describe other files and hold no code of their own. */
function isCode(path: string): boolean {
  return !path.endsWith('.d.ts')
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

function getRow(path: string): string | undefined {
  const rows = Object.keys(MAY_IMPORT).filter((row) => within(withoutExtension(path), row))
  return rows.sort((a, b) => b.length - a.length)[0]
}

function mayImport(row: string, target: string): boolean {
  const isPackage = !/^(src|views|db|tests|scripts|bench)\//.test(target) && target !== 'package'
  if (isPackage) return !MAY_NOT_USE[row]?.test(target)
  return [row, ...ANYWHERE, ...(MAY_IMPORT[row] ?? [])].some((allowed) => within(target, allowed))
}

function within(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

/** Values only: `scanImports` leaves type-only imports out. Our own files come back from the root, without extension. */
function getImports(path: string, isLoadedAtOnce = (_kind: string) => true): string[] {
  const imports = new Bun.Transpiler({ loader: getLoader(path) }).scanImports(read(path))
  return imports
    .filter(({ kind }) => isLoadedAtOnce(kind))
    .map((one) => (one.path.startsWith('.') ? withoutExtension(normalize(join(dirname(path), one.path))) : one.path))
}

/** Files of ours that `path` imports from, also where it imports only types. */
function getTypeImports(path: string): string[] {
  return [...read(path).matchAll(/\bfrom '(\.[^']+)'/g)].map(([, target = '']) =>
    withoutExtension(normalize(join(dirname(path), target))),
  )
}

/** Lines with a late import that a `try` encloses; it trusts the formatter's depths. */
function importsInTry(source: string): number[] {
  const lines = source.split('\n')
  const depth = (line: string) => line.length - line.trimStart().length
  return lines.flatMap((line, at) => {
    let least = depth(line)
    const opened = lines.slice(0, at).findLast((above) => {
      const isOuter = above.trim() !== '' && depth(above) < least
      if (isOuter) least = depth(above)
      return isOuter && (least === 0 || /^\s*try \{$/.test(above))
    })
    return /\bimport\(/.test(line) && /^\s*try \{$/.test(opened ?? '') ? [at + 1] : []
  })
}

/** Everything that is loaded with `path`, at any depth, without dynamic imports. */
function loadedBy(path: string, known = new Set<string>()): Set<string> {
  for (const name of getImports(path, (kind) => kind !== 'dynamic-import')) {
    if (known.has(name)) continue
    known.add(name)
    const file = SOURCES.find((one) => isCode(one) && withoutExtension(one) === name)
    if (file) loadedBy(file, known)
  }
  return known
}

function withoutExtension(path: string): string {
  return path.replace(/\.[a-z]+$/, '')
}

function getLoader(path: string): 'ts' | 'tsx' {
  return path.endsWith('.tsx') ? 'tsx' : 'ts'
}

function getCode(path: string): string {
  return bare(read(path), getLoader(path))
}

/** Code without types, comments and string contents, in which whatever is bound locally has another name. */
function bare(source: string, loader: 'ts' | 'tsx'): string {
  const options = { loader, minify: { identifiers: true } } // `minify` works but is missing from bun-types
  return new Bun.Transpiler(options).transformSync(source).replaceAll(/"(?:[^"\\\n]|\\.)*"/g, '""')
}

/** A name that is neither a property of something else nor the tail of a longer name. */
function global(names: string): RegExp {
  return new RegExp(`(?<![.\\w$])(?:${names})`, 'g')
}

/**
 * Where functions with a body of several lines begin, and how many lines they have. It trusts the formatter: a body
 * opens with a brace at the end of a line, and closes on the first later line that starts with a brace at the same depth.
 */
function getFunctions(source: string): { line: number; lines: number }[] {
  const lines = source.split('\n')
  const depth = (line: string) => line.length - line.trimStart().length
  const getBeginning = (at: number, opening: string) =>
    lines.findLastIndex((line, i) => i < at && line !== '' && depth(line) === depth(opening))

  return lines.flatMap((opening, at) => {
    if (!OPENS_A_BODY.test(opening)) return []
    const start = /^\s*[)\]}]/.test(opening) ? getBeginning(at, opening) : at // the tail of a parameter list
    if (CONTROL_FLOW.test(lines[start] ?? '')) return []
    const after = lines.slice(at + 1)
    const length = after.findIndex((line) => depth(line) === depth(opening) && line.trimStart().startsWith('}'))
    return length < 0 ? [] : [{ line: start + 1, lines: at - start + length + 2 }]
  })
}
