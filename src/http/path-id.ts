/** The `:id` in the path of a request. */
import type { Ctx } from '../bindings.ts'

/** For handlers of routes with `:id`: the row of the route knows that it is there, the type of the context does not. */
export const idOf = (c: Ctx): string => c.req.param('id') ?? ''
