/** Writes a batch of ended turns to SQLite. */
import type { Database } from 'bun:sqlite'
import { inTransaction, type Query, type Rows } from '../../../db/connection.ts'
import { runStatements } from '../../../db/statements.ts'
import { getClients, getReads, getStatements, type LedgerBatch, toStored } from './ledger-batch.ts'

/**
 * Writes a batch in one transaction.
 *
 * `synchronous=NORMAL` avoids a disk sync per batch. If the process is killed, only the last 100 ms and the batch
 * being written are lost. A power cut also loses batches not yet on disk: those since the last commit with FULL,
 * checkpoint or system write-back (about 30 s on Linux).
 */
export const writeLedger = (sqlite: Database, batch: LedgerBatch): void => {
  sqlite.run('PRAGMA synchronous = NORMAL')
  try {
    inTransaction(sqlite, () => addBatch(sqlite, batch))
  } finally {
    sqlite.run('PRAGMA synchronous = FULL')
  }
}

/** The same inside a transaction. */
export const addBatch = (sqlite: Database, batch: LedgerBatch): void => {
  const read = ({ sql, bindings }: Query): Rows => sqlite.query(sql).values(...bindings)
  const { accounts, summedUntil, openMeters } = getReads(batch)
  const stored = toStored({
    accounts: read(accounts),
    summedUntil: read(summedUntil),
    openMeters: read(openMeters),
  })
  runStatements(sqlite, getStatements(batch, stored, getClients(sqlite)))
}
