/** `/api/dashboard-auth/clock`: time zone and hour format of pages, in cookies of this browser like the theme. */
import type { Context } from 'hono'
import { deleteCookie, setCookie } from 'hono/cookie'
import { z } from 'zod'
import { body } from '../../http/body.ts'
import { signedIn } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed } from '../../http/reply.tsx'
import { CHOSEN_HOURS, CHOSEN_ZONE } from '../../http/viewer-clock.ts'
import { isZone } from '../../lib/zoned-days.ts'

const Clock = z.strictObject({
  timeZone: z
    .string()
    .trim()
    .max(64)
    .refine((zone) => zone === '' || isZone(zone), 'is not a time zone, like Europe/Berlin')
    .describe('IANA name. Empty: the zone of the browser.'),
  hours: z.enum(['24', '12']).default('24').describe('Clock with 24 or 12 hours.'),
})

const YEAR_SECONDS = 365 * 86_400

/** The API's times stay in UTC. Throws `validation_error` for an unknown zone. */
export const chooseClock = createHandlers(signedIn(), body(Clock), (c) => {
  const { timeZone, hours } = c.req.valid('json')
  keep(c, CHOSEN_ZONE, timeZone)
  keep(c, CHOSEN_HOURS, hours === '12' ? hours : '')
  return proceed(c, { timeZone: timeZone || null, hours: Number(hours) }, '/me?done=clock_saved#clock')
})

const keep = (c: Context, name: string, value: string): void => {
  if (value === '') deleteCookie(c, name)
  else setCookie(c, name, value, { path: '/', maxAge: YEAR_SECONDS, sameSite: 'Lax', httpOnly: true })
}
