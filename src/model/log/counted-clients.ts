/** The clients that hourly totals tell apart. A user agent is free text, so an hour has a limit of names. */
import { clientName } from '../../lib/user-agent.ts'
import { OTHER_CLIENTS } from '../reports/report-filters.ts'

/** In one report. */
export const MAX_CLIENTS = 50

const MAX_CLIENTS_AN_HOUR = 30
const MAX_CHARS = 64

export class CountedClients {
  #hour = 0
  #names = new Set<string>()

  /** `hour`: its start, ms since epoch. Requests of an earlier hour that end late count under the names of the latest. */
  countedAs(userAgent: string | null, hour: number): string {
    if (hour > this.#hour) {
      this.#hour = hour
      this.#names.clear()
    }
    const name = clientName(userAgent)
    if (name === null) return ''
    if (this.#names.has(name)) return name
    if (name.length > MAX_CHARS || this.#names.size >= MAX_CLIENTS_AN_HOUR) return OTHER_CLIENTS
    this.#names.add(name)
    return name
  }
}
