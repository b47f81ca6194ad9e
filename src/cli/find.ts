/** Finds one account, key or user by id, id prefix or name. */
import type { Db } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import { type CliIo, type Run, UsageError, withFolder } from './command.ts'

export interface Kind<T> {
  /** "account" */
  what: string
  /** The command that lists them: "accounts list". */
  listedBy: string
  all: (db: Db) => Promise<readonly T[]>
  getNames: (item: T) => (string | null)[]
}

/** A command whose only argument names one of `kind`; `run` returns a message. */
export const commandForOne =
  <T extends { id: string }>(kind: Kind<T>, run: (db: Db, found: T, io: CliIo) => string | Promise<string>): Run =>
  (io, [wanted = '']) =>
    withFolder(io, async ({ db }) => {
      io.stdout(`${await run(db, findOne(kind, await kind.all(db), wanted), io)}\n`)
      return 0
    })

/**
 * The item with id or name `wanted`, or the only one whose id starts with it. Throws `not_found`, and `UsageError` for
 * several matches.
 */
export const findOne = <T extends { id: string }>(
  { what, listedBy, getNames }: Kind<T>,
  items: readonly T[],
  wanted: string,
): T => {
  const text = wanted.toLowerCase()
  const stages: ((item: T) => boolean)[] = [
    (item) => item.id === wanted,
    (item) => getNames(item).some((name) => name?.toLowerCase() === text),
    (item) => wanted !== '' && item.id.startsWith(wanted),
  ]
  for (const matches of stages) {
    const found = items.filter(matches)
    if (found.length > 1) {
      const choices = found.map((item) => `${getNames(item).find(Boolean) ?? ''} (${item.id})`)
      throw new UsageError(`"${wanted}" matches ${found.length} ${what}s. Use one of these ids: ${choices.join(', ')}.`)
    }
    if (found[0]) return found[0]
  }
  throw new AppError('not_found', {
    message: `There is no ${what} "${wanted}". "sluice ${listedBy}" shows them all.`,
  })
}
