/** Prints every route with its gates, read from the app itself. */

import { formatRoutes } from '../src/http/route-table.ts'
import { everyRoute } from '../src/routes/every-route.ts'

console.log(formatRoutes(everyRoute))
