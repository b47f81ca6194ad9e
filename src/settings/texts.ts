/** Formats of settings that are text. */
import { z } from 'zod'

/** Scheme, host, port, and no path. */
const ORIGINS = /^([a-z][a-z0-9+.-]*:\/\/[^\s,/?#@*]+([\s,]+|$))*$/
const ORIGINS_HINT = 'must be origins like https://app.example, separated by spaces'

export const HOURS = /^(([01]\d|2[0-3]):[0-5]\d( |$))*$/
export const HOURS_HINT = 'must be times like 08:00 13:30, separated by spaces'

export const HOUR = /^([01]\d|2[0-3]):[0-5]\d$/
export const HOUR_HINT = 'must be a time like 09:00'

export const ZONE_HINT = 'must be a time zone like Europe/Berlin'

export const DAY_NAMES = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
const DAYS = /^((mon|tue|wed|thu|fri|sat|sun)( |$))*$/

/** In the order of the week, each once. */
export const WorkingDays = z
  .string()
  .max(200)
  .overwrite((text) =>
    text
      .trim()
      .toLowerCase()
      .replace(/[\s,]+/g, ' '),
  )
  .regex(DAYS, 'must be days like mon tue wed, separated by spaces')
  .overwrite((text) => DAY_NAMES.filter((day) => text.split(' ').includes(day)).join(' '))

/**
 * An origin as browsers send it: without default port, host in Punycode. Built by hand because a URL's own origin is
 * `null` for unknown schemes like `app://`. Null: not a URL.
 */
const normalOrigin = (text: string): string | null => {
  const url = URL.parse(text)
  return url && `${url.protocol}//${url.host}`
}

const areUrls = (text: string): boolean => text.split(/[\s,]+/).every((one) => one === '' || URL.canParse(one))

const normalOrigins = (text: string): string => text.replace(/[^\s,]+/g, (one) => normalOrigin(one) ?? one)

export const Origins = z
  .string()
  .trim()
  .toLowerCase()
  .max(2000)
  .regex(ORIGINS, ORIGINS_HINT)
  .refine(areUrls, ORIGINS_HINT)
  .overwrite(normalOrigins)
