/**
 * PostgreSQL accepts every statement of ours. `npm test` records the statements of all layers and runs this last; alone, it
 * runs some test files for them.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { getDdl } from '../../db/postgres/ddl.ts'
import { toPostgres } from '../../db/postgres/statements.ts'
import * as schema from '../../db/schema/all.ts'
import { MAY_SKIP, type PostgresServer, startPostgres } from '../support/postgres.ts'

/** Statements of which PostgreSQL has no counterpart: what runs them will do something else there. */
const OF_SQLITE: readonly { pattern: RegExp; why: string }[] = [
  {
    pattern: /^\s*(PRAGMA|BEGIN|COMMIT|ROLLBACK|VACUUM|CREATE|ALTER|DROP)\b/i,
    why: 'connections, migrations and files',
  },
  { pattern: /\bmigrations\b/, why: 'which migrations were applied' },
  {
    pattern:
      /\bdbstat\b|\bsqlite_(schema|master)\b|\bpragma_|OCTET_LENGTH|"sqlite_sequence"|UPDATE sqlite_sequence|\b(alembic_version|dashboard_settings|api_key_accounts|api_firewall_allowlist|request_logs)\b/,
    why: 'files: table-sizes.ts measures one, copies write one, imports read one of codex-lb',
  },
  { pattern: /\bseq FROM sqlite_sequence\b/, why: 'audit-verify.ts asks for the last id that was given out' },
]

/** Written by tests themselves, into our tables and into theirs. */
const OF_TESTS = /^WITH RECURSIVE|"things"|\b(FROM|INTO) t\b/

/** Few and quick, and with most of the statements. */
const FILES = [
  'api-keys',
  'audit-verify',
  'overview',
  'request-digests',
  'request-histogram',
  'request-log',
  'table-sizes',
]

/** The same for lists of any length and for any number in the text. */
const shapeOf = (statement: string): string =>
  statement
    .replace(/\s+/g, ' ')
    .replace(/\?(?:, ?\?)+/g, '?')
    .replace(/\d+/g, '0')

describe.skipIf(MAY_SKIP)('PostgreSQL', () => {
  let server: PostgresServer
  let dir: string

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-statements-'))
    server = await startPostgres()
    for (const statement of getDdl(schema)) await server.sql.unsafe(statement)
  })
  afterAll(async () => {
    rmSync(dir, { recursive: true, force: true })
    await server[Symbol.asyncDispose]()
  })

  test("accepts every statement that is not SQLite's own", async () => {
    const recorded = process.env.SLUICE_TEST_STATEMENTS ?? (await recordIn(dir))
    const shapes = [...readShapes(recorded).values()].filter((statement) => !OF_TESTS.test(statement))
    const own = Map.groupBy(shapes, (statement) => OF_SQLITE.find(({ pattern }) => pattern.test(statement)))
    const shared = own.get(undefined) ?? []
    console.log(
      `note: ${shared.length} statements also for PostgreSQL, ${shapes.length - shared.length} for SQLite alone`,
    )
    expect(await refusals(server, shared)).toEqual([])
    expect(OF_SQLITE.filter((one) => !own.has(one))).toEqual([])
  })
})

const recordIn = async (dir: string): Promise<string> => {
  const files = FILES.map((name) => `./tests/model/${name}.test.ts`)
  const child = Bun.spawn([process.execPath, 'test', '--timeout=60000', ...files], {
    cwd: resolve(import.meta.dir, '../..'),
    env: { ...process.env, SLUICE_TEST_STATEMENTS: dir },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const output = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(`The tests failed that run the statements:\n${output}`)
  return dir
}

/** One statement of each shape. */
const readShapes = (dir: string): Map<string, string> => {
  const lines = readdirSync(dir).flatMap((file) => readFileSync(join(dir, file), 'utf8').trimEnd().split('\n'))
  return new Map(lines.map((line) => JSON.parse(line) as string).map((statement) => [shapeOf(statement), statement])) // as: written so
}

const refusals = async ({ sql }: PostgresServer, statements: readonly string[]): Promise<string[]> => {
  const refused: string[] = []
  for (const [place, statement] of statements.entries())
    try {
      await sql.unsafe(`PREPARE s${place} AS ${toPostgres(statement)}`)
    } catch (error) {
      refused.push(`${error}: ${statement}`)
    }
  return refused
}
