/** Native client versions, on which the upstream's model catalog depends. */

/** Used when a client does not state its version: the newest whose catalog is known to work. */
export const PINNED_CLIENT_VERSION = '0.169.0'

/** `0.169.0`, `0.170.0-alpha.1`; other values are not sent upstream. */
export const isClientVersion = (text: string): boolean => VERSION.test(text)

const VERSION = /^(?:0|[1-9]\d{0,3})(?:\.(?:0|[1-9]\d{0,3})){2}(?:-(?:alpha|beta|rc)(?:\.\d{1,4}){0,2})?$/

/** Picks from `known`: `wanted` itself, otherwise the newest before it, otherwise the oldest after it. Null if `known` is empty. */
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
