/** The time zone and hours in which a page shows times: what the viewer chose under My account, or what their browser says. */
import type { Context } from 'hono'
import { getCookie } from 'hono/cookie'
import { createClock, type ViewerClock } from '../../views/ui/viewer-clock.ts'
import { isZone, startInZone } from '../lib/zoned-days.ts'
import { createMiddleware } from './handlers.ts'
import { representation } from './reply.tsx'

/** Set by the script of every page. */
const BROWSER_ZONE = 'zone'
/** Set under My account; both are per browser, like the theme. */
export const CHOSEN_ZONE = 'my_zone'
export const CHOSEN_HOURS = 'hours'

/** null: the browser has not said yet, or names a zone this runtime does not know; times are then in UTC. */
export const viewerZone = (c: Context): string | null =>
  [chosenZone(c), getCookie(c, BROWSER_ZONE)].find((zone) => zone !== undefined && isZone(zone)) ?? null

/** As it was chosen, which may be a zone this runtime does not know. */
export const chosenZone = (c: Context): string | undefined => getCookie(c, CHOSEN_ZONE) || undefined

export const viewerHours = (c: Context): 12 | 24 => (getCookie(c, CHOSEN_HOURS) === '12' ? 12 : 24)

export const viewerClock = (c: Context): ViewerClock => createClock(viewerZone(c), viewerHours(c))

/** What a `datetime-local` field sends: a time without a zone. */
const LOCAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/

/**
 * Times that a filter form sends are the viewer's own. The browser is sent on to the same page with them in UTC, so that
 * links, exports and shared addresses mean the same everywhere. JSON clients are left alone: for them no zone means UTC.
 */
export const localTimes = createMiddleware((c, next) => {
  const zone = c.req.method === 'GET' && representation(c) !== 'json' ? viewerZone(c) : null
  const url = URL.parse(c.req.url)
  if (zone === null || url === null) return next()
  const params = [...url.searchParams].map(([name, value]) => [name, utcOf(value, zone)] as [string, string])
  if (params.every(([, value], index) => value === [...url.searchParams.values()][index])) return next()
  return Promise.resolve(c.redirect(`${url.pathname}?${new URLSearchParams(params)}`, 302))
})

/** Anything but a time without a zone stays as it is. */
const utcOf = (value: string, zone: string): string => {
  const wall = LOCAL_TIME.test(value) ? Date.parse(`${value}Z`) : Number.NaN
  return Number.isNaN(wall) ? value : new Date(startInZone(wall, zone)).toISOString()
}
