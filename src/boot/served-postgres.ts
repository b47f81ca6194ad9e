/** A server process on PostgreSQL: one of several nodes. */
import { commit, type Tx } from '../../db/commit.ts'
import type { OpenedPostgres } from '../../db/postgres/open.ts'
import { requireOwnSession } from '../../db/postgres/own-session.ts'
import { PostgresSession } from '../../db/postgres/session.ts'
import type { ServedFolder } from '../cli/open-folder.ts'
import { systemClock } from '../lib/clock.ts'
import { readFact, writeFact } from '../model/facts.ts'
import { createPostgresReader } from '../threads/postgres-reader.ts'
import { replayThreads } from '../threads/replayer.ts'
import type { Served } from './served-database.ts'

/** Each process is a node. It shares limits with other nodes, even if there are none. */
export const servePostgres = async (opened: ServedFolder, postgres: OpenedPostgres, url: string): Promise<Served> => {
  await requireOwnSession(postgres.sql, systemClock)
  const number = await commit(opened.db, nextNode)
  const session = await PostgresSession.open({ url, clock: systemClock, number, onSilent: postgres.setSilent })
  const others = {
    number,
    isAlive: (other: number) => session.isAlive(other),
    hasEarlier: () => true,
    onReconnect: (listener: () => void) => session.onReconnect(listener),
  }
  const close = async () => {
    await session.close()
    await opened.close()
  }
  return {
    folder: { ...opened, locks: session, close },
    reader: createPostgresReader(postgres.slowDb),
    startReplay: replayThreads(url),
    nodes: { ...postgres, hasOthers: () => hasOthers(session) },
    others,
    sharing: { ...others, processes: 2 },
    isAlone: (await session.getNodes()).size === 1,
  }
}

const hasOthers = async (session: PostgresSession): Promise<boolean> => {
  try {
    return (await session.getNodes()).size > 1
  } catch {
    return true // unknown while PostgreSQL cannot be reached
  }
}

const NODES = 'nodes_started'

/** A new number for a node that starts. Numbers are never reused. */
const nextNode = async (tx: Tx): Promise<number> => {
  const number = Number((await readFact(tx, NODES)) ?? 0) + 1
  await writeFact(tx, NODES, String(number))
  return number
}
