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
  const isBefore = compare(version, wanted) <= 0
  if (isBefore !== compare(best, wanted) <= 0) return isBefore
  return isBefore ? compare(version, best) > 0 : compare(version, best) < 0
}

/** By number, then a release after its pre-releases, then by text. */
const compare = (left: string, right: string): number => {
  const [leftNumbers, leftSuffix] = partsOf(left)
  const [rightNumbers, rightSuffix] = partsOf(right)
  for (const [index, number] of leftNumbers.entries()) {
    const difference = number - (rightNumbers[index] ?? 0)
    if (difference !== 0) return difference
  }
  if (leftSuffix === rightSuffix) return 0
  if (leftSuffix === '' || rightSuffix === '') return leftSuffix === '' ? 1 : -1
  return leftSuffix < rightSuffix ? -1 : 1
}

const partsOf = (version: string): [numbers: number[], suffix: string] => {
  const [core = '', ...suffix] = version.split('-')
  return [core.split('.').map((part) => Number.parseInt(part, 10) || 0), suffix.join('-')]
}
