/** The time zone of the browser, which its script keeps in a cookie. */
import { getCookie } from 'hono/cookie'
import type { Ctx } from '../bindings.ts'
import { isZone } from '../model/report-days.ts'

/** UTC until the script has run, and for a zone that does not exist. */
export const zoneOf = (c: Ctx): string => {
  const zone = getCookie(c, 'zone')
  return zone && isZone(zone) ? zone : 'UTC'
}
