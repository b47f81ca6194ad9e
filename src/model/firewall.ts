/** Which addresses may use the proxy routes: a list of addresses and ranges, also in memory. */
import { asc, eq, sql } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../db/commit.ts'
import { firewallEntries } from '../../db/schema/keys.ts'
import { requests } from '../../db/schema/requests.ts'
import { AppError } from '../errors.ts'
import { anyContains, type Cidr, formatCidr, parseCidr } from '../lib/cidr.ts'
import { type Actor, append } from './audit/audit.ts'

export type FirewallEntry = typeof firewallEntries.$inferSelect

/** Checked first on every proxy route. */
export class Firewall {
  readonly #db: Db
  #ranges: readonly Cidr[] = []

  private constructor(db: Db) {
    this.#db = db
  }

  static async open(db: Db): Promise<Firewall> {
    const firewall = new Firewall(db)
    await firewall.reload()
    return firewall
  }

  async reload(): Promise<void> {
    this.#ranges = (await listEntries(this.#db)).flatMap(({ ipAddress }) => parseCidr(ipAddress) ?? [])
  }

  /** An empty list allows everyone. Otherwise clients with unknown address (null) are rejected. */
  allows(ip: string | null): boolean {
    return this.#ranges.length === 0 || (ip !== null && anyContains(this.#ranges, ip))
  }
}

/** Oldest first. */
export const listEntries = (db: Db): Promise<FirewallEntry[]> =>
  db.select().from(firewallEntries).orderBy(asc(firewallEntries.createdAt), asc(firewallEntries.ipAddress)).all()

/** Stores `text` in its canonical form. Throws `invalid_ip`, `ip_exists`. */
export const addEntry = async (tx: Tx, text: string, actor: Actor): Promise<FirewallEntry> => {
  const ipAddress = canonical(text)
  if (!ipAddress) throw new AppError('invalid_ip', { param: 'ipAddress' })
  const [added] = await tx
    .insert(firewallEntries)
    .values({ ipAddress, createdAt: actor.at })
    .onConflictDoNothing()
    .returning()
    .all()
  if (!added) throw new AppError('ip_exists', { param: 'ipAddress' })
  await append(tx, actor, 'firewall_entry_added', { target: ipAddress })
  notice(tx, 'firewall')
  return added
}

/** Removes the entry in any spelling. Throws `ip_not_found`. */
export const removeEntry = async (tx: Tx, text: string, actor: Actor): Promise<void> => {
  const ipAddress = canonical(text) ?? ''
  const removed = await tx.delete(firewallEntries).where(eq(firewallEntries.ipAddress, ipAddress)).returning().all()
  if (removed.length === 0) throw new AppError('ip_not_found')
  await append(tx, actor, 'firewall_entry_removed', { target: ipAddress })
  notice(tx, 'firewall')
}

const canonical = (text: string): string | null => {
  const cidr = parseCidr(text.trim())
  return cidr && formatCidr(cidr)
}

/** Reading these takes about ten milliseconds. */
const MAX_READ = 15_000

/** At most `limit` addresses from the newest 15,000 requests since `since` (ms since epoch), most requests first. */
export const recentCallers = async (db: Db, since: number, limit: number): Promise<string[]> =>
  (
    await db.all<{ clientIp: string }>(sql`
      SELECT client_ip AS "clientIp" FROM (
        SELECT client_ip FROM ${requests} WHERE started_at >= ${since} ORDER BY started_at DESC LIMIT ${MAX_READ}) AS recent
      WHERE client_ip IS NOT NULL GROUP BY client_ip ORDER BY count(*) DESC, client_ip LIMIT ${limit}`)
  ).map(({ clientIp }) => clientIp)
