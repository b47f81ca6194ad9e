/** Time zone and hour format of a page: chosen under My account, otherwise the browser's. */
import type { Context } from 'hono'
import { getCookie } from 'hono/cookie'
import { createClock, type ViewerClock } from '../../views/ui/viewer-clock.ts'
import { isZone, startInZone } from '../lib/zoned-days.ts'
import { createMiddleware } from './handlers.ts'
import { representation } from './representation.ts'

/** Set by the script of every page. */
const BROWSER_ZONE = 'zone'
/** Set under My account; both are per browser, like the theme. */
export const CHOSEN_ZONE = 'my_zone'
export const CHOSEN_HOURS = 'hours'

/** Null when the browser has not reported a zone this runtime knows; times are then shown in UTC. */
export const viewerZone = (c: Context): string | null =>
  [chosenZone(c), getCookie(c, BROWSER_ZONE)].find((zone) => zone !== undefined && isZone(zone)) ?? null

/** As chosen, possibly a zone this runtime does not know. */
export const chosenZone = (c: Context): string | undefined => getCookie(c, CHOSEN_ZONE) || undefined

export const viewerHours = (c: Context): 12 | 24 => (getCookie(c, CHOSEN_HOURS) === '12' ? 12 : 24)

export const viewerClock = (c: Context): ViewerClock => createClock(viewerZone(c), viewerHours(c))

/** What a `datetime-local` field sends: a time without zone. */
const LOCAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/

/**
 * Filter forms send times in the viewer's zone. Redirects the browser to the same page with UTC times, so that links
 * and exports mean the same everywhere. For JSON clients, no zone means UTC.
 */
export const localTimes = createMiddleware((c, next) => {
  const zone = c.req.method === 'GET' && representation(c) !== 'json' ? viewerZone(c) : null
  const url = URL.parse(c.req.url)
  if (zone === null || url === null) return next()
  const params = [...url.searchParams].map(([name, value]) => [name, getUtc(value, zone)] as [string, string])
  if (params.every(([, value], index) => value === [...url.searchParams.values()][index])) return next()
  return Promise.resolve(c.redirect(`${url.pathname}?${new URLSearchParams(params)}`, 302))
})

/** Only times without a zone are converted. */
const getUtc = (value: string, zone: string): string => {
  const wall = LOCAL_TIME.test(value) ? Date.parse(`${value}Z`) : Number.NaN
  return Number.isNaN(wall) ? value : new Date(startInZone(wall, zone)).toISOString()
}
