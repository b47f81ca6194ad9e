/** Routes of the table that later versions answer: their gates stand already, and behind them there is nothing yet. */
import { AppError } from '../../errors.ts'
import { clientKey, type KeyNeed, type Restriction, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'

export const notBuilt = (key: KeyNeed, capability: Restriction) =>
  createHandlers(clientKey(key), restricted(capability), (_c) => {
    throw new AppError('not_found')
  })

/** 426 is the one answer after which the native client goes on over HTTP at once and without a word (client protocol §1.15). */
export const socketsNotBuilt = createHandlers(clientKey('optional'), restricted('refuse'), (c) => {
  if (c.req.header('upgrade')?.toLowerCase() !== 'websocket') throw new AppError('not_found')
  throw new AppError('not_found', { status: 426, message: 'WebSockets are not served here; use POST.' })
})
