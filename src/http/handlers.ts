/** Creates typed handler tuples: `createHandlers(gate, body, handler)`, mounted with a spread. */
import { createFactory } from 'hono/factory'
import type { AppEnv } from '../boot/bindings.ts'

export const { createHandlers, createMiddleware } = createFactory<AppEnv>()
