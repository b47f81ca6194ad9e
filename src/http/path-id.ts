/** The `:id` in the path of a request. */
import type { Ctx } from '../boot/bindings.ts'

/** For routes with `:id`: the route guarantees it, but the context type does not know. */
export const getPathId = (c: Ctx): string => c.req.param('id') ?? ''
