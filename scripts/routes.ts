/** Prints every route with its gates, read from the app itself. */
import { app } from '../src/app.ts'
import { formatRoutes, routeTable } from '../src/http/route-table.ts'

console.log(formatRoutes(routeTable(app)))
