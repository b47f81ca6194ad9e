/** Writes a batch of ended turns to PostgreSQL. */
import { allOf, commitStatements, send } from '../../../db/postgres/batch.ts'
import { type Client, type PostgresProcedure, rowsOf } from '../../../db/postgres/connection.ts'
import { getClients, getReads, getStatements, type LedgerBatch, type LedgerEntry, toStored } from './ledger-batch.ts'
import { writeLedger } from './ledger-writer.ts'

/**
 * Writes a batch in one transaction. If the connection was lost during an earlier COMMIT, some entries may be stored
 * already. They are left out, and so are the rejected clients, which cannot be told apart.
 */
const writeToPostgres = async (client: Client, batch: LedgerBatch): Promise<void> => {
  try {
    await write(client, batch)
  } catch (error) {
    const stored = isDuplicate(error) ? await getStoredIds(client, batch) : new Set()
    if (stored.size === 0) throw error
    await write(client, without(stored, batch))
  }
}

/**
 * Does not take the commit lock, so ledgers of several nodes can write at the same time. The first rows it reads cannot
 * change until it ends: no account is deleted, and no hour is added up (`addUpHours`).
 */
const write = async (client: Client, batch: LedgerBatch): Promise<void> => {
  const reads = getReads(batch)
  try {
    const [, accounts, summedUntil, openMeters] = await allOf([
      send(client, 'BEGIN'),
      rowsOf(client, { ...reads.accounts, sql: `${reads.accounts.sql} FOR KEY SHARE` }),
      rowsOf(client, { ...reads.summedUntil, sql: `${reads.summedUntil.sql} FOR SHARE` }),
      rowsOf(client, { ...reads.openMeters, sql: `${reads.openMeters.sql} FOR UPDATE` }),
    ] as const)
    await commitStatements(
      client,
      getStatements(batch, toStored({ accounts, summedUntil, openMeters }), getClients(client)),
    )
  } catch (error) {
    await send(client, 'ROLLBACK').catch(() => {}) // if the connection is lost, the transaction is too
    throw error
  }
}

const without = (stored: ReadonlySet<unknown>, batch: LedgerBatch): LedgerBatch => {
  const isNew = ({ row }: LedgerEntry) => !stored.has(row.id)
  const meters = batch.meters.map((noted) => ({
    ...noted,
    after: batch.entries.slice(0, noted.after).filter(isNew).length,
  }))
  return { ...batch, entries: batch.entries.filter(isNew), meters, rejected: [] }
}

const UNIQUE_VIOLATION = '23505'

const isDuplicate = (error: unknown): boolean =>
  error instanceof Error && 'errno' in error && error.errno === UNIQUE_VIOLATION

const getStoredIds = async (client: Client, { entries }: LedgerBatch): Promise<ReadonlySet<unknown>> => {
  const ids = JSON.stringify(entries.map(({ row }) => row.id))
  const rows = await rowsOf(client, {
    sql: 'SELECT id FROM requests WHERE id IN (SELECT value FROM json_each(?))',
    bindings: [ids],
  })
  return new Set(rows.map(([id]) => id))
}

/** The procedures for `onPostgres`. */
export const LEDGER_ON_POSTGRES: ReadonlyMap<unknown, PostgresProcedure<never>> = new Map([
  [writeLedger, writeToPostgres],
]) as never // as: pairs procedures with the same arguments
