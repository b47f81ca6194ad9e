/** What a node that stops in the middle of a commit costs the others, and a writer whose connection was ended. */
import { afterAll, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { sql as raw } from 'drizzle-orm'
import { isBusy } from '../../../db/busy.ts'
import { commit, notice } from '../../../db/commit.ts'
import { begin, commitCounting, getRows, rollback, runQuery } from '../../../db/connection.ts'
import { openPostgres } from '../../../db/postgres/open.ts'
import { PostgresWriter } from '../../../db/postgres/writer.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { MAY_SKIP, type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

let server: PostgresServer | undefined
afterAll(() => server?.[Symbol.asyncDispose]())

const open = async (node: string) => {
  server ??= await startPostgres()
  return openPostgres(server.url, { clock: systemClock, node, onListenerError: () => {} })
}

test.skipIf(MAY_SKIP)(
  'a commit that stands still is ended after some seconds, and fails',
  async () => {
    const frozen = await open('a')
    const other = await open('b')
    const isOpen = Promise.withResolvers<void>()
    const mayGoOn = Promise.withResolvers<void>()
    const still = commit(frozen.db, async (tx) => {
      await tx.run(raw`SELECT 1`)
      isOpen.resolve()
      await mayGoOn.promise
      await tx.run(raw`SELECT 1`)
    }).catch((error: unknown) => error)
    await isOpen.promise
    const outcomes: string[] = []
    while (!outcomes.includes('done'))
      outcomes.push(
        await commit(other.db, async () => 'done').catch((error: unknown) => (isBusy(error) ? 'busy' : String(error))),
      )
    expect(outcomes.slice(0, -1).filter((outcome) => outcome !== 'busy')).toEqual([])
    mayGoOn.resolve()
    expect(await still).toBeInstanceOf(Error)
    expect(await commit(frozen.db, async () => 'again')).toBe('again')
    await Promise.all([frozen.close(), other.close()])
  },
  60_000,
)

test.skipIf(MAY_SKIP)(
  'a commit notifies the other nodes of its topics, and not its own',
  async () => {
    const [one, other] = [await open('one'), await open('other')]
    const heard: string[][] = []
    const stop = await other.watch((topics) => void heard.push([...topics]))
    const own: string[][] = []
    const stopOwn = await one.watch((topics) => void own.push([...topics]))
    await commit(one.db, async (tx) => {
      notice(tx, 'keys')
      notice(tx, 'settings')
    })
    await commit(one.db, async () => {})
    await until(() => heard.length > 0)
    await commit(other.db, async (tx) => notice(tx, 'people')) // later than anything else could arrive
    await until(() => own.length > 0)
    expect([heard, own]).toEqual([[['keys', 'settings']], [['people']]])
    await Promise.all([stop(), stopOwn()])
    await Promise.all([one.close(), other.close()])
  },
  60_000,
)

test.skipIf(MAY_SKIP)(
  'a connection that the server ended between commits is opened again',
  async () => {
    const { db, close } = await open('c')
    expect(await commit(db, async () => 1)).toBe(1)
    const sql = server!.sql
    const sessions = await sql`SELECT pid FROM pg_stat_activity WHERE application_name = 'sluice'`
    const pids = sql.array(
      sessions.map(({ pid }: { pid: number }) => pid),
      'INT',
    )
    await sql`SELECT pg_terminate_backend(pid) FROM unnest(${pids}) AS pid`
    // The pool may already have opened new connections, so wait for the ended ones alone.
    await until(async () => (await sql`SELECT 1 FROM pg_stat_activity WHERE pid = ANY(${pids})`).length === 0)
    expect(await commit(db, async () => 2)).toBe(2)
    await close()
  },
  60_000,
)

/** A writer whose server is killed after it has committed and before it answers. */
const killedAtCommit = async () => {
  server ??= await startPostgres()
  const { url, sql } = server
  await sql.unsafe('CREATE TABLE IF NOT EXISTS committed (n INTEGER)')
  const pool = new SQL({ url, max: 2, connectionTimeout: 5 })
  let isKilled = false
  const reserve = async () => {
    const client = await pool.reserve()
    const commit = async () => {
      isKilled = true
      await client.unsafe('COMMIT')
      await server!.kill()
      throw new Error('The answer is lost.')
    }
    const unsafe = (text: string, values?: unknown[]) =>
      text === 'COMMIT' && !isKilled ? commit() : client.unsafe(text, values)
    return new Proxy(client, { get: (target, name) => (name === 'unsafe' ? unsafe : Reflect.get(target, name)) })
  }
  const writer = new PostgresWriter({ sql: { reserve }, node: 'k', clock: systemClock, more: new Map() })
  await writer.call(begin, null)
  await writer.call(runQuery, { sql: 'INSERT INTO committed VALUES (1)', bindings: [] })
  const close = () => {
    writer.close()
    return pool.close()
  }
  return {
    writer,
    close,
    commit: () =>
      writer.call(commitCounting, []).then(
        () => 'committed',
        () => 'failed',
      ),
  }
}

test.skipIf(MAY_SKIP)(
  'a commit without an answer succeeds if the server is back soon and has stored it',
  async () => {
    const { close, commit } = await killedAtCommit()
    const outcome = commit()
    await until(() => server!.isRunning() === false)
    await server!.resume()
    expect(await outcome).toBe('committed')
    await close()
  },
  60_000,
)

test.skipIf(MAY_SKIP)(
  'a commit without an answer fails if the server stays away, so that later ones do not wait',
  async () => {
    const { writer, close, commit } = await killedAtCommit()
    const began = performance.now()
    expect(await commit()).toBe('failed')
    expect(performance.now() - began).toBeLessThan(15_000)
    await server!.resume()
    await writer.call(begin, null)
    expect(await writer.call(getRows, { sql: 'SELECT 1', bindings: [] })).toEqual([[1]])
    await writer.call(rollback, null)
    await close()
  },
  60_000,
)
