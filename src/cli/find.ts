/** Finds what a person means by an id, the beginning of one, or a name. */
import { AppError } from '../errors.ts'
import { UsageError } from './command.ts'

/** The one item whose id or one of whose names is `wanted`, else the only one whose id begins so, with or without its prefix. */
export const findOne = <T extends { id: string }>(
  items: readonly T[],
  wanted: string,
  { what, namesOf }: { what: string; namesOf: (item: T) => (string | null)[] },
): T => {
  const text = wanted.toLowerCase()
  const stages: ((item: T) => boolean)[] = [
    (item) => item.id === wanted,
    (item) => namesOf(item).some((name) => name?.toLowerCase() === text),
    (item) => wanted !== '' && (item.id.startsWith(wanted) || bare(item.id).startsWith(wanted)),
  ]
  for (const matches of stages) {
    const found = items.filter(matches)
    if (found.length > 1) throw ambiguous(what, wanted, found)
    if (found[0]) return found[0]
  }
  throw new AppError('not_found', { message: `There is no ${what} "${wanted}".` })
}

const bare = (id: string): string => id.slice(id.indexOf('_') + 1)

const ambiguous = (what: string, wanted: string, found: readonly { id: string }[]): UsageError =>
  new UsageError(`"${wanted}" could be ${found.length} ${what}s: ${found.map(({ id }) => id).join(', ')}.`)
