/** What nodes on one PostgreSQL share: commits one at a time, notifications, and locks that end with their session. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { eq, sql } from 'drizzle-orm'
import { atOneMoment, commit, notice, type Topic } from '../../../db/commit.ts'
import { getDdl } from '../../../db/postgres/ddl.ts'
import { type OpenedPostgres, openPostgres, postgresReader } from '../../../db/postgres/open.ts'
import { PostgresSession } from '../../../db/postgres/session.ts'
import * as schema from '../../../db/schema/all.ts'
import { facts } from '../../../db/schema/system.ts'
import { AppError } from '../../../src/errors.ts'
import { type Clock, systemClock } from '../../../src/lib/clock.ts'
import { readFact, writeFact } from '../../../src/model/facts.ts'
import { createPostgresReader } from '../../../src/threads/postgres-reader.ts'
import { ManualClock } from '../../support/clock.ts'
import { MAY_SKIP, type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'

describe.skipIf(MAY_SKIP)('nodes on PostgreSQL', () => {
  let server: PostgresServer
  const closing: (() => Promise<unknown>)[] = []

  beforeAll(async () => {
    server = await startPostgres()
    for (const statement of getDdl(schema)) await server.sql.unsafe(statement)
  })
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
    await server.sql.unsafe('TRUNCATE facts')
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const aNode = (node: string): OpenedPostgres => {
    const opened = openPostgres(server.url, {
      clock: systemClock,
      node,
      onListenerError: (error) => {
        throw error
      },
    })
    closing.push(opened.close)
    return opened
  }

  const aSession = async (number: number, clock: Clock = systemClock): Promise<PostgresSession> => {
    const session = await PostgresSession.open({ url: server.url, clock, number })
    closing.push(() => session.close())
    return session
  }

  /** The answers of the server come in real time, so each beat has to end before the next. */
  const beat = async (session: PostgresSession, clock: ManualClock, times: number) => {
    for (let n = 0; n < times; n++) {
      await clock.advance('1s')
      await session.getNodes()
    }
  }

  /** Ends the connections whose last statement contains `text`, as a restart of the server does. */
  const endConnections = (text: string) =>
    server.sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sluice' AND query LIKE ${`%${text}%`}`

  const increment = ({ db }: OpenedPostgres) =>
    commit(db, async (tx) => writeFact(tx, 'n', String(Number((await readFact(tx, 'n')) ?? 0) + 1)))

  test('commits of several nodes run one at a time', async () => {
    const nodes = [aNode('a'), aNode('b'), aNode('c')]
    await Promise.all(Array.from({ length: 60 }, (_, n) => increment(nodes[n % 3]!)))
    expect(await readFact(nodes[0]!.db, 'n')).toBe('60')
  })

  test('a commit that throws stores nothing, and the next one works', async () => {
    const node = aNode('a')
    const failed = await commit(node.db, async (tx) => {
      await writeFact(tx, 'n', '1')
      throw new Error('no')
    }).catch((error: Error) => error.message)
    expect(failed).toBe('no')
    expect(await readFact(node.db, 'n')).toBeNull()
    await increment(node)
    expect(await readFact(node.db, 'n')).toBe('1')
  })

  test('an uncommitted row is seen by its own commit only', async () => {
    const [a, b] = [aNode('a'), aNode('b')]
    await commit(a.db, async (tx) => {
      await writeFact(tx, 'n', '1')
      expect([await readFact(tx, 'n'), await readFact(a.db, 'n'), await readFact(b.db, 'n')]).toEqual(['1', null, null])
    })
  })

  test('the connection that reads cannot write', async () => {
    const { db } = aNode('a')
    const failed = await db.all(sql`INSERT INTO facts VALUES ('n', '1')`).catch((error: Error) => error)
    expect(String((failed as Error).cause ?? failed)).toContain('read-only')
  })

  test('the queries of a snapshot see one moment, and a failed one does not disturb others', async () => {
    const node = aNode('a')
    await increment(node)
    const seen = await atOneMoment(node.db, async (db) => {
      const before = await readFact(db, 'n')
      await increment(node)
      return [before, await readFact(db, 'n'), await readFact(node.db, 'n')]
    })
    expect(seen).toEqual(['1', '1', '2'])
    const failed = await atOneMoment(node.db, (db) => db.all(sql`SELECT nonsense`)).catch(() => 'failed')
    expect([failed, await readFact(node.db, 'n')]).toEqual(['failed', '2'])
  })

  test('a commit notifies the other nodes of its topics, and not its own node', async () => {
    const [a, b] = [aNode('a'), aNode('b')]
    const heard: Topic[][] = []
    closing.push(await b.watch((topics) => void heard.push([...topics])))
    await commit(b.db, async (tx) => notice(tx, 'keys'))
    await commit(a.db, async (tx) => {
      notice(tx, 'settings')
      notice(tx, 'accounts')
    })
    await until(() => heard.length > 0)
    expect(heard).toEqual([['accounts', 'settings']])
  })

  test('a node whose connection was lost reloads every topic', async () => {
    const [a, b] = [aNode('a'), aNode('b')]
    const heard: number[] = []
    closing.push(await b.watch((topics) => void heard.push(topics.size)))
    await endConnections('LISTEN')
    await until(() => heard.length > 0)
    expect(heard[0]).toBeGreaterThan(10)
    await commit(a.db, async (tx) => notice(tx, 'keys'))
    await until(() => heard.at(-1) === 1)
  })

  test('messages reach the other nodes in order, also more than fit into one notification', async () => {
    const [a, b] = [aNode('a'), aNode('b')]
    const heard: unknown[] = []
    closing.push(await b.onMessage((message) => heard.push(message)))
    closing.push(await a.onMessage(() => expect().fail('a node must not hear itself')))
    const sent = Array.from({ length: 100 }, (_, n) => ({ n, text: 'ü'.repeat(90) }))
    for (const message of sent) a.send(message)
    await until(() => heard.length === 100)
    expect(heard).toEqual(sent)
  })

  test('writing goes on after the connection was lost', async () => {
    const node = aNode('a')
    await increment(node)
    await endConnections('COMMIT')
    await increment(node)
    expect(await readFact(node.db, 'n')).toBe('2')
  })

  test('a commit whose connection is lost before COMMIT stores nothing and rejects', async () => {
    const node = aNode('a')
    const failed = await commit(node.db, async (tx) => {
      await writeFact(tx, 'n', '1')
      await endConnections('INSERT INTO')
      await endConnections('insert into')
      await tx.update(facts).set({ value: '2' }).where(eq(facts.name, 'n')).run()
    }).then(
      () => 'stored',
      () => 'rejected',
    )
    expect([failed, await readFact(node.db, 'n')]).toEqual(['rejected', null])
    await increment(node)
    expect(await readFact(node.db, 'n')).toBe('1')
  })

  test('a read that takes too long is rejected as busy', async () => {
    const { slowDb } = aNode('a')
    const blocker = await server.sql.reserve()
    await blocker.unsafe('BEGIN')
    await blocker.unsafe('LOCK TABLE audit_logs')
    const answer = createPostgresReader(slowDb).auditVerdict()
    const code = await answer.catch((error: unknown) => (error instanceof AppError ? error.code : error))
    await blocker.unsafe('ROLLBACK')
    blocker.release()
    expect(code).toBe('busy')
  })

  test('a reader of its own is closed with its connection', async () => {
    const { db, close } = postgresReader(server.url)
    expect(await readFact(db, 'n')).toBeNull()
    await close()
    expect(await readFact(db, 'n').catch(() => 'closed')).toBe('closed')
  })

  describe('a lock', () => {
    test('is held by one node at a time, and not twice by the same', async () => {
      const [a, b] = [await aSession(1), await aSession(2)]
      const lock = await a.tryLock('jobs')
      expect([await a.tryLock('jobs'), await b.tryLock('jobs')]).toEqual([null, null])
      expect(await b.tryLock('refresh:acc_1')).not.toBeNull()
      lock?.release()
      lock?.release()
      await until(async () => (await b.tryLock('jobs')) !== null)
      expect(await a.tryLock('jobs')).toBeNull()
    })

    test('is released when its session ends, and the node is notified', async () => {
      const [a, b] = [await aSession(1), await aSession(2)]
      let lost = 0
      await a.tryLock('jobs', () => lost++)
      await endConnections('advisory_lock($1, hashtext')
      await until(() => lost === 1)
      await until(async () => (await b.tryLock('jobs')) !== null)
      expect(await a.tryLock('jobs')).toBeNull() // connected again
    })
  })

  test('nodes see each other come and go', async () => {
    const a = await aSession(1)
    const b = await aSession(2)
    expect(a.isAlive(2)).toBe(true) // it began later
    expect([...(await a.getNodes())].toSorted()).toEqual([1, 2])
    await b.close()
    await until(async () => !(await a.getNodes()).has(2))
    expect((await aSession(3)).isAlive(2)).toBe(false)
  })

  test('a node whose session ended counts as running until it had time to connect again', async () => {
    const clock = new ManualClock()
    const a = await aSession(1, clock)
    const b = await aSession(2)
    await a.getNodes()
    await b.close()
    await until(async () => !(await a.getNodes()).has(2))
    expect(a.isAlive(2)).toBe(true)
    await beat(a, clock, 6)
    await clock.advance('900ms')
    expect(a.isAlive(2)).toBe(true)
    await clock.advance('200ms')
    expect(a.isAlive(2)).toBe(false)
    expect(a.isAlive(3)).toBe(true) // as far as this node knows, it has just started
    await beat(a, clock, 7)
    expect(a.isAlive(3)).toBe(false)
  })

  test('nodes that started since the last look count as running, in whatever order they are noticed', async () => {
    const a = await aSession(1, new ManualClock())
    expect([5, 4, 3, 2].map((number) => a.isAlive(number))).toEqual([true, true, true, true])
    await aSession(8)
    expect([...(await a.getNodes())].toSorted()).toEqual([1, 8])
    expect(a.isAlive(7)).toBe(true) // it may have connected right after
  })

  test('a node is notified when it has a session again', async () => {
    const a = await aSession(1)
    let times = 0
    a.onReconnect(() => times++)
    await a.getNodes()
    expect(times).toBe(0)
    await endConnections('pg_locks')
    await until(() => times > 0)
    expect([...(await a.getNodes())]).toEqual([1])
    expect(times).toBe(1)
  })

  test('after an outage, nodes that were running count as running until they had time to connect again', async () => {
    const clock = new ManualClock()
    const a = await aSession(1, clock)
    const b = await aSession(2)
    await a.getNodes()
    await b.close()
    await until(async () => !(await a.getNodes()).has(2))
    await endConnections('pg_locks')
    await clock.advance('2s')
    await until(() =>
      a.getNodes().then(
        () => true,
        () => false, // not connected yet
      ),
    )
    await beat(a, clock, 6)
    await clock.advance('900ms')
    expect(a.isAlive(2)).toBe(true)
    await clock.advance('200ms')
    expect(a.isAlive(2)).toBe(false)
  })
})
