/**
 * A PostgreSQL session that holds the locks of this node. The locks end with the session: immediately when the node
 * ends, or after a few seconds when it is frozen or disconnected.
 */
import { type ReservedSQL, SQL } from 'bun'
import type { Clock } from '../../src/lib/clock.ts'
import type { FolderLock, Locks } from '../lock.ts'

const NAMES = 2
export const NODES = 3
const BEAT_MS = 1000
/**
 * The server ends the session if this node sends nothing for this long. The node ends it if the server does not answer.
 */
const PATIENCE_MS = 5000
/**
 * A node whose session ended counts as running for this long. It may only have lost its connection: its next beat
 * connects again, which can hang for `PATIENCE_MS`, and then the beat after it.
 */
const RETURN_MS = PATIENCE_MS + 2 * BEAT_MS

interface SessionDeps {
  url: string
  clock: Clock
  /** The number of this node. Nodes that start later have higher numbers. */
  number: number
  /** Called when the server stops answering and when it answers again. In between, other connections hang too. */
  onSilent?: (isSilent: boolean) => void
}

export class PostgresSession implements Locks {
  readonly #deps: SessionDeps
  readonly #sql: SQL
  #client: ReservedSQL | null = null
  #connecting: Promise<ReservedSQL> | null = null
  #opening: ReservedSQL | null = null
  readonly #held = new Map<string, () => void>()
  /** Other nodes, and until when they count as running (monotonic). */
  readonly #runUntil = new Map<number, number>()
  /** The highest number that this node knows. */
  #newest: number
  /** Whether this node knows which nodes have a session since it has its own. */
  #hasLooked = false
  #isBeating = false
  #stopBeat = () => {}
  #hasConnected = false
  #onReconnect = () => {}

  /** Rejects if the server cannot be reached. */
  static async open(deps: SessionDeps): Promise<PostgresSession> {
    const session = new PostgresSession(deps)
    await session.getNodes()
    session.#stopBeat = deps.clock.every(BEAT_MS, () => session.#beat())
    return session
  }

  private constructor(deps: SessionDeps) {
    this.#deps = deps
    this.#newest = deps.number
    this.#sql = new SQL({
      url: deps.url,
      max: 1,
      connectionTimeout: PATIENCE_MS / 1000,
      connection: { application_name: 'sluice', idle_session_timeout: PATIENCE_MS },
      onclose: () => this.#lose(),
    })
  }

  /** Whether a node is running. While this node cannot look, those that were running count as running. */
  isAlive(number: number): boolean {
    const now = this.#deps.clock.monotonic()
    this.#noteStarted(number)
    const until = this.#runUntil.get(number)
    return number === this.#deps.number || (until !== undefined && (until > now || !this.#hasLooked))
  }

  /** `listener` is called when this node has a session again. Until then, other nodes may count it as ended. */
  onReconnect(listener: () => void): void {
    this.#onReconnect = listener
  }

  /** Nodes up to this number have started since the last look. Some may have no session yet. */
  #noteStarted(number: number): void {
    const until = this.#deps.clock.monotonic() + RETURN_MS
    while (this.#newest < number) this.#runUntil.set(++this.#newest, until)
  }

  /** The numbers of the nodes with a session, including this one. */
  async getNodes(): Promise<ReadonlySet<number>> {
    const client = await this.#connect()
    const rows = await client.unsafe(NODES_RUNNING, [NODES])
    const nodes = new Set([this.#deps.number, ...rows.map(({ number }: { number: number }) => number)])
    if (this.#client === client) this.#noteNodes(nodes)
    return nodes
  }

  #noteNodes(nodes: ReadonlySet<number>): void {
    const now = this.#deps.clock.monotonic()
    for (const [number, until] of this.#runUntil) {
      if (!this.#hasLooked)
        this.#runUntil.set(number, now + RETURN_MS) // it may have lost its connection, too
      else if (until <= now) this.#runUntil.delete(number)
      else this.#runUntil.set(number, Math.min(until, now + RETURN_MS))
    }
    this.#noteStarted(Math.max(...nodes))
    for (const number of nodes) this.#runUntil.set(number, Number.POSITIVE_INFINITY)
    this.#hasLooked = true
  }

  async tryLock(name: string, onLost = () => {}): Promise<FolderLock | null> {
    if (this.#held.has(name)) return null // the server would grant it to the same session again
    this.#held.set(name, onLost)
    try {
      const client = await this.#connect()
      const [row] = await client.unsafe('SELECT pg_try_advisory_lock($1, hashtext($2)) AS held', [NAMES, name])
      if (row.held && this.#client === client) return { release: () => this.#release(name, onLost) }
    } catch (error) {
      this.#forget(name, onLost)
      throw error
    }
    this.#forget(name, onLost)
    return null
  }

  async close(): Promise<void> {
    this.#stopBeat()
    this.#held.clear()
    await this.#client?.release().catch(() => {})
    await this.#sql.close()
  }

  #release(name: string, onLost: () => void): void {
    if (!this.#forget(name, onLost)) return // it was lost
    this.#client?.unsafe('SELECT pg_advisory_unlock($1, hashtext($2))', [NAMES, name]).then(
      () => {},
      () => this.#lose(),
    )
  }

  #forget(name: string, onLost: () => void): boolean {
    return this.#held.get(name) === onLost && this.#held.delete(name)
  }

  /** Connects once for all waiting callers. A second reservation would wait until the first is returned. */
  async #connect(): Promise<ReservedSQL> {
    if (this.#client) return this.#client
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = null
    })
    return this.#connecting
  }

  async #open(): Promise<ReservedSQL> {
    const client = await this.#sql.reserve()
    this.#opening = client
    try {
      await client.unsafe('SELECT pg_advisory_lock_shared($1, $2)', [NODES, this.#deps.number])
    } catch (error) {
      void client.close().catch(() => {})
      throw error
    } finally {
      this.#opening = null
    }
    this.#client = client
    if (this.#hasConnected) this.#onReconnect()
    this.#hasConnected = true
    return client
  }

  async #beat(): Promise<void> {
    if (this.#isBeating) return
    this.#isBeating = true
    const cancel = this.#deps.clock.after(PATIENCE_MS, () => {
      this.#lose()
      this.#deps.onSilent?.(true)
    })
    try {
      await this.getNodes()
      this.#deps.onSilent?.(false)
    } catch {
      this.#lose() // the next beat connects again
    } finally {
      cancel()
      this.#isBeating = false
    }
  }

  /** Gives up all locks: they are lost, or this node can no longer tell. */
  #lose(): void {
    const client = this.#client ?? this.#opening
    this.#client = null
    this.#hasLooked = false
    void client?.close().catch(() => {})
    const held = [...this.#held.values()]
    this.#held.clear()
    for (const onLost of held) onLost()
  }
}

/** Advisory locks with two keys have these numbers in `pg_locks` (www.postgresql.org/docs/15/view-pg-locks.html). */
export const NODES_RUNNING = `SELECT DISTINCT objid::int AS number FROM pg_locks
  WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = $1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
