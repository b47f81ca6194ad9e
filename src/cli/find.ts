/** Commands about one thing, which a person names by an id, the beginning of one, or a name. */
import type { Db } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import { type CliIo, type Command, onlyArgument, readArgs, UsageError, withFolder } from './command.ts'

interface Kind<T> {
  /** "account" */
  what: string
  /** By what it is found, for who named none: "its id or its name". */
  foundBy: string
  all: (db: Db) => readonly T[]
  namesOf: (item: T) => (string | null)[]
}

/** A command whose only argument names one of `kind`; `run` ends with the sentence that says what was done. */
export const aboutOne =
  <T extends { id: string }>(kind: Kind<T>, run: (db: Db, found: T, io: CliIo) => string | Promise<string>): Command =>
  (args, io) => {
    const wanted = onlyArgument(readArgs(args, {}).positionals, `${kind.what}: ${kind.foundBy}`)
    return withFolder(io, async ({ db }) => {
      io.stdout(`${await run(db, findOne(kind.all(db), wanted, kind), io)}\n`)
      return 0
    })
  }

/** The one item whose id or one of whose names is `wanted`, else the only one whose id begins so. */
const findOne = <T extends { id: string }>(
  items: readonly T[],
  wanted: string,
  { what, namesOf }: Pick<Kind<T>, 'what' | 'namesOf'>,
): T => {
  const text = wanted.toLowerCase()
  const stages: ((item: T) => boolean)[] = [
    (item) => item.id === wanted,
    (item) => namesOf(item).some((name) => name?.toLowerCase() === text),
    (item) => wanted !== '' && item.id.startsWith(wanted),
  ]
  for (const matches of stages) {
    const found = items.filter(matches)
    if (found.length > 1) throw ambiguous(what, wanted, found)
    if (found[0]) return found[0]
  }
  throw new AppError('not_found', { message: `There is no ${what} "${wanted}".` })
}

const ambiguous = (what: string, wanted: string, found: readonly { id: string }[]): UsageError =>
  new UsageError(`"${wanted}" could be ${found.length} ${what}s: ${found.map(({ id }) => id).join(', ')}.`)
