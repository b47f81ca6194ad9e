/** Prints every route with its gates, read from the app itself. */
import { everyRoute } from '../src/every-route.ts'
import { formatRoutes } from '../src/http/route-table.ts'

console.log(formatRoutes(everyRoute))
