/** PostgreSQL's catalogue after creating the schema: everything the tables declare, as SQLite has it after its migrations. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { getDdl } from '../../../db/postgres/ddl.ts'
import * as schema from '../../../db/schema/all.ts'
import { testDb } from '../../support/db.ts'
import { MAY_SKIP, type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { type Catalogue, ofPostgres, ofSqlite, ofTables } from './catalogue.ts'

describe.skipIf(MAY_SKIP)('the schema in PostgreSQL', () => {
  let server: PostgresServer
  let created: Catalogue

  beforeAll(async () => {
    server = await startPostgres()
    for (const statement of getDdl(schema)) await server.sql.unsafe(statement)
    created = await ofPostgres(server.sql)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  test('is what the tables declare', () => {
    expect(created).toEqual(ofTables(schema))
  })

  test('is what the migrations of SQLite create', () => {
    expect(ofSqlite(testDb().sqlite)).toEqual(created)
  })

  test('numbers rows itself where SQLite does', async () => {
    const { sql } = server
    await sql`INSERT INTO audit_logs (at, event, actor, severity) VALUES (1, 'e', 'a', 'info'), (2, 'e', 'a', 'info')`
    expect(await sql`SELECT id::int FROM audit_logs ORDER BY id`.values()).toEqual([[1], [2]])
  })

  test('orders text by bytes', async () => {
    const { sql } = server
    await sql`INSERT INTO facts (name, value) VALUES ('b', ''), ('B', ''), ('ä', ''), ('a-b', ''), ('ab', '')`
    expect(await sql`SELECT name FROM facts ORDER BY name`.values()).toEqual([['B'], ['a-b'], ['ab'], ['b'], ['ä']])
  })
})
