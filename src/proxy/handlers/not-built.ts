/** Routes of the table that later versions answer: their gates stand already, and behind them there is nothing yet. */
import { AppError } from '../../errors.ts'
import { clientKey, type KeyNeed, type Restriction, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'

export const notBuilt = (key: KeyNeed, capability: Restriction) =>
  createHandlers(clientKey(key), restricted(capability), (_c) => {
    throw new AppError('not_found')
  })
