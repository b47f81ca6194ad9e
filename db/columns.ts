/** The column kinds of this schema. Names are left out: the connection maps `createdAt` to `created_at`. */
import { integer, text } from 'drizzle-orm/sqlite-core'

/** Text primary key, made by `Random.id` before the row exists. `Id` may be a branded string. */
export const id = <Id extends string = string>() => text().primaryKey().$type<Id>()

/** A moment or a duration: integer milliseconds. */
export const ms = (name = '') => integer(name)

/** 0 or 1 in the file, a boolean in code. */
export const bool = (name = '') => integer(name, { mode: 'boolean' })

/** JSON as text. `Value` is a claim, not a check: parse what came from outside before it is stored. */
export const json = <Value>(name = '') => text(name, { mode: 'json' }).$type<Value>()

/** One of `values` as text, typed but not enforced by the database. */
export const oneOf = <const Values extends readonly [string, ...string[]]>(values: Values, name = '') =>
  text(name, { enum: values as unknown as [Values[0], ...Values[number][]] }) // as: drizzle wants a mutable tuple type
