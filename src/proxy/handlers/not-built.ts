/** Routes of the table that later versions answer: their gates stand already, and behind them there is nothing yet. */
import type { Ctx } from '../../bindings.ts'
import { AppError } from '../../errors.ts'
import { clientKey, type KeyNeed, type Restriction, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'

export const notBuilt = (key: KeyNeed, capability: Restriction) =>
  createHandlers(clientKey(key), restricted(capability), planned())

/** Says what it is to the route table, which has no other way to tell. */
const planned = () =>
  Object.assign(
    (_c: Ctx): never => {
      throw new AppError('not_found')
    },
    { isPlanned: true },
  )
