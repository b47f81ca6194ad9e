/** Routes for later versions: their gates exist, but they answer `not_found`. */
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { clientKey, type KeyNeed, type Restriction, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'

export const notBuilt = (key: KeyNeed, capability: Restriction) =>
  createHandlers(clientKey(key), restricted(capability), planned())

/** Marks the handler as planned for the route table. */
const planned = () =>
  Object.assign(
    (_c: Ctx): never => {
      throw new AppError('not_found')
    },
    { isPlanned: true },
  )
