/** Versions of the native client, by which the upstream varies its model catalog. */

/** Asked for when a client does not say its own; the newest whose catalog is known to be understood. */
export const PINNED_CLIENT_VERSION = '0.169.0'

/** `0.169.0`, `0.170.0-alpha.1`; anything else is not asked of the upstream. */
export const isClientVersion = (text: string): boolean => VERSION.test(text)

const VERSION = /^(?:0|[1-9]\d{0,3})(?:\.(?:0|[1-9]\d{0,3})){2}(?:-(?:alpha|beta|rc)(?:\.\d{1,4}){0,2})?$/

/** Of `known`: `wanted` itself, else the newest before it, else the oldest after it; null when there is none. */
export const nearestVersion = (known: Iterable<string>, wanted: string): string | null => {
  let best: string | null = null
  for (const version of known) {
    if (version === wanted) return version
    if (best === null || isNearer(version, best, wanted)) best = version
  }
  return best
}

const isNearer = (version: string, best: string, wanted: string): boolean => {
  const isBefore = Bun.semver.order(version, wanted) <= 0
  if (isBefore !== Bun.semver.order(best, wanted) <= 0) return isBefore
  return isBefore ? Bun.semver.order(version, best) > 0 : Bun.semver.order(version, best) < 0
}
