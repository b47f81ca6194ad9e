/** `sluice logs`: the newest requests, and with `-f` those that end while it runs. */

import type { Db } from '../../db/commit.ts'
import { systemClock } from '../lib/clock.ts'
import type { LogEntry } from '../model/log/request-log-entry.ts'
import type { LogStatus } from '../model/log/request-log-query.ts'
import { entriesEndedSince, newestEntries } from '../model/log/request-log-tail.ts'
import { type CliIo, type Run, UsageError, withFolder } from './command.ts'
import { localTime } from './table.ts'

interface LogOptions {
  follow?: true
  errors?: true
  limit?: string
  json?: true
}

const MOST = 1000

export const logs: Run<LogOptions> = (io, _args, { follow, errors, limit = '20', json }) => {
  const shown = /^\d{1,4}$/.test(limit) ? Number(limit) : MOST + 1
  if (shown > MOST) throw new UsageError(`--limit must be a whole number from 0 to ${MOST}, not "${limit}".`)
  const options = { errorsOnly: errors === true, limit: shown }
  const print = (entry: LogEntry) => io.stdout(json ? `${JSON.stringify(entry)}\n` : `${getLine(entry)}\n`)
  return withFolder(io, async ({ db }) => {
    const seen = await Seen.open(db, options.errorsOnly)
    const newest = await newestEntries(db, options)
    if (newest.length === 0 && !follow) io.stderr(errors ? 'No errors in the log.\n' : 'No requests in the log yet.\n')
    for (const entry of seen.both(newest)) print(entry)
    if (follow) await followLog(io, async () => (await seen.added()).forEach(print))
    return 0
  })
}

const POLL_MS = 500

/** Until the command is interrupted. */
const followLog = async (io: CliIo, look: () => Promise<unknown>): Promise<void> => {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  io.stderr('Waiting for new requests. Press Ctrl-C to stop.\n')
  while (!stop.signal.aborted) {
    await look()
    await systemClock.sleep(POLL_MS, stop.signal).catch(() => {}) // interrupted: the loop ends
  }
}

/** A request is written when it ends, or this much later when the disk is slow. */
const LATE_MS = 30_000

/** Tracks printed requests, so that each is printed once. */
class Seen {
  readonly #db: Db
  readonly #errorsOnly: boolean
  #ids = new Set<string>()

  private constructor(db: Db, errorsOnly: boolean) {
    this.#db = db
    this.#errorsOnly = errorsOnly
  }

  static async open(db: Db, errorsOnly: boolean): Promise<Seen> {
    const seen = new Seen(db, errorsOnly)
    await seen.added()
    return seen
  }

  /** Marks the entries as seen and returns them. */
  both(entries: readonly LogEntry[]): readonly LogEntry[] {
    for (const { id } of entries) this.#ids.add(id)
    return entries
  }

  /** Entries added since the last check. */
  async added(): Promise<LogEntry[]> {
    const late = await this.#late()
    const added = late.filter(({ id }) => !this.#ids.has(id))
    this.#ids = new Set(late.map(({ id }) => id))
    return added
  }

  async #late(): Promise<LogEntry[]> {
    return entriesEndedSince(this.#db, { errorsOnly: this.#errorsOnly, since: systemClock.now() - LATE_MS })
  }
}

const RESULTS: Record<LogStatus, string> = {
  ok: 'ok',
  cancelled: 'cancelled',
  rate_limit: 'rate limited',
  quota: 'out of quota',
  error: 'error',
}

/** `2026-11-20 19:30:05  ok  gpt-5.5  laptop  ada@example.test  1.24 s  1,234 tokens`, and the reason of an error. */
const getLine = (entry: LogEntry): string => {
  const { status, model, apiKeyName, accountName, latencyMs, tokens, errorCode, errorMessage } = entry
  const cells = [
    localTime(Date.parse(entry.requestedAt)),
    RESULTS[status].padEnd(12),
    (model ?? '-').padEnd(16),
    (apiKeyName ?? 'no key').padEnd(12),
    (accountName ?? 'no account').padEnd(24),
    `${(latencyMs / 1000).toFixed(2)} s`.padStart(8),
    tokens === null ? '' : `${tokens.toLocaleString('en')} tokens`,
    errorCode === null ? '' : `${errorMessage ?? ''} (${errorCode})`.trim(),
  ]
  return cells.filter((cell) => cell !== '').join('  ')
}
