/** The options of `sluice accounts edit` for name, policy, tags, order, caps and owner. */
import { z } from 'zod'
import type { Db } from '../../db/commit.ts'
import { ROUTING_POLICIES } from '../../db/schema/accounts.ts'
import { Tags } from '../model/accounts/account-tags.ts'
import type { AccountEdit } from '../model/accounts/accounts.ts'
import { UsageError } from './command.ts'
import { findOne } from './find.ts'
import { USER } from './users.ts'

export interface RoutingOptions {
  alias?: string
  policy?: string
  tag?: readonly string[]
  removeTags?: true
  position?: string
  max5h?: string
  maxWeek?: string
  owner?: string
  reserveForOwner?: string
}

/** What was given, without the owner. Throws `UsageError`. */
export const routingFrom = (options: RoutingOptions): AccountEdit => {
  const { alias, policy, tag, removeTags, position, max5h, maxWeek, reserveForOwner } = options
  if (removeTags && tag) throw new UsageError('Use either --tag or --remove-tags.')
  return {
    ...(alias !== undefined && { alias: alias.trim() || null }),
    ...(policy !== undefined && {
      routingPolicy: read(z.enum(ROUTING_POLICIES), '--policy', policy, `one of ${ROUTING_POLICIES.join(', ')}`),
    }),
    ...(tag && { tags: read(Tags, '--tag', tag, 'of 1 to 40 characters, given at most 20 times') }),
    ...(removeTags && { tags: [] }),
    ...(position !== undefined && {
      position: read(number(1_000_000), '--position', position, 'a place from 1, or none'),
    }),
    ...(max5h !== undefined && { maxUsedPercentPrimary: read(number(100), '--max-5h', max5h, PERCENT) }),
    ...(maxWeek !== undefined && { maxUsedPercentSecondary: read(number(100), '--max-week', maxWeek, PERCENT) }),
    ...(reserveForOwner !== undefined && {
      reserveForOwner: read(z.enum(['yes', 'no']), '--reserve-for-owner', reserveForOwner, 'yes or no') === 'yes',
    }),
  }
}

/** Throws `not_found`, and `UsageError` for several matches. */
export const ownerFrom = async (db: Db, { owner }: RoutingOptions): Promise<AccountEdit> =>
  owner === undefined ? {} : { ownerUserId: owner === 'none' ? null : findOne(USER, await USER.all(db), owner).id }

const PERCENT = 'a percentage from 1 to 100, or none'

const number = (max: number) =>
  z.union([z.literal('none').transform(() => null), z.coerce.number().int().min(1).max(max)])

const read = <S extends z.ZodType>(schema: S, option: string, value: unknown, hint: string): z.output<S> => {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new UsageError(`${option} must be ${hint}.`)
}
