/** A PostgreSQL server that stops answering without closing its connections. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { commit, notice, type Topic } from '../../../db/commit.ts'
import { getDdl } from '../../../db/postgres/ddl.ts'
import { type OpenedPostgres, openPostgres } from '../../../db/postgres/open.ts'
import { PostgresSession } from '../../../db/postgres/session.ts'
import * as schema from '../../../db/schema/all.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { readFact, writeFact } from '../../../src/model/facts.ts'
import { MAY_SKIP, type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { startSilentRelay } from '../../support/silent-relay.ts'
import { until } from '../../support/until.ts'

describe.skipIf(MAY_SKIP)('a server that no longer answers', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
    for (const statement of getDdl(schema)) await server.sql.unsafe(statement)
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const open = (url: string, node: string) =>
    openPostgres(url, {
      clock: systemClock,
      node,
      onListenerError: (error) => {
        throw error
      },
    })

  test('fails what waits for it, and is used again once it can be reached', async () => {
    const { port } = new URL(server.url)
    await using relay = await startSilentRelay(Number(port))
    const url = server.url.replace(port, String(relay.port))
    const [node, other] = [open(url, 'a'), open(server.url, 'b')]
    const session = await PostgresSession.open({ url, clock: systemClock, number: 1, onSilent: node.setSilent })
    await using _ = { [Symbol.asyncDispose]: () => closeAll(session, node, other) }
    const moved: Topic[] = []
    const messages: unknown[] = []
    await node.watch((topics) => void moved.push(...topics))
    await node.onMessage((message) => messages.push(message))
    await write(node, '1')
    expect(await readFact(node.db, 'n')).toBe('1')

    relay.silence()
    const began = performance.now()
    const waiting = [
      ...Array.from({ length: 6 }, () => readFact(node.db, 'n')), // more than there are connections
      node.slowDb.all(sql`SELECT 1`),
      write(node, '2'),
    ].map((work) => Promise.resolve(work).then(() => 'answered', getCode))
    expect(await Promise.all(waiting)).toEqual(
      waiting.map(() => expect.stringMatching(/^ERR_POSTGRES_CONNECTION_(CLOSED|TIMEOUT)$/)),
    )
    expect(performance.now() - began).toBeLessThan(15_000)
    expect(await readFact(node.db, 'n').then(() => 'answered', getCode)).toBe('ERR_POSTGRES_CONNECTION_CLOSED')

    relay.resume()
    await until(() =>
      readFact(node.db, 'n').then(
        (value) => value === '1',
        () => false,
      ),
    )
    await until(() =>
      write(node, '3').then(
        () => true,
        () => false,
      ),
    )
    expect(await readFact(other.db, 'n')).toBe('3')
    await until(() => moved.includes('firewall')) // everything, because notifications were missed
    await until(async () => {
      moved.length = 0
      other.send('hello')
      await commit(other.db, async (tx) => notice(tx, 'keys'))
      await Bun.sleep(50)
      return moved.includes('keys') && messages.includes('hello')
    })
  }, 120_000)
})

const write = ({ db }: OpenedPostgres, value: string) => commit(db, (tx) => writeFact(tx, 'n', value))

const getCode = (error: Error & { code?: string }) => error.code ?? error.message

const closeAll = async (session: PostgresSession, ...nodes: OpenedPostgres[]) => {
  await session.close()
  for (const node of nodes) await node.close()
}
