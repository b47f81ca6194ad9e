/** The active alerts, kept in memory for the bell on every page and for the attention list. */
import { and, isNotNull, isNull } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { alertIncidents, SEVERITIES } from '../../../db/schema/alerts.ts'
import { type Grants, holds } from '../users/permissions.ts'
import { listChannels } from './channels.ts'
import { wordsOf } from './events.ts'
import type { IncidentRow } from './incidents.ts'

export class StandingAlerts {
  readonly #db: Db
  #incidents: readonly IncidentRow[] = []
  #failing: readonly { id: string; name: string }[] = []

  private constructor(db: Db) {
    this.#db = db
  }

  static async open(db: Db): Promise<StandingAlerts> {
    const standing = new StandingAlerts(db)
    await standing.reload()
    return standing
  }

  async reload(): Promise<void> {
    const isStanding = and(isNull(alertIncidents.recoveredAt), isNotNull(alertIncidents.raisedAt))
    const incidents = await this.#db.select().from(alertIncidents).where(isStanding).all()
    const channels = await listChannels(this.#db)
    const rank = ({ severity }: IncidentRow) => SEVERITIES.indexOf(severity)
    this.#incidents = incidents.toSorted(
      (a, b) => rank(b) - rank(a) || (b.raisedAt ?? 0) - (a.raisedAt ?? 0) || (a.id < b.id ? 1 : -1),
    )
    this.#failing = channels.flatMap(({ id, name, isActive, lastDelivery }) =>
      isActive && lastDelivery?.ok === false ? [{ id, name }] : [],
    )
  }

  /** The active alerts that a user with these grants may see, most severe first, then newest. */
  for(grants: Grants): readonly IncidentRow[] {
    return this.#incidents.filter((incident) => maySeeAlert(grants, incident.event))
  }

  get isAuditBroken(): boolean {
    return this.#incidents.some(({ event }) => event === 'security.audit')
  }

  /** Active channels whose newest message failed. */
  get failingChannels(): readonly { id: string; name: string }[] {
    return this.#failing
  }
}

export const maySeeAlert = (grants: Grants, event: string): boolean => {
  const words = wordsOf(event)
  return words !== null && holds(grants, words.needs)
}
