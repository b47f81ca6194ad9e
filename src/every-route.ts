/** Both tables in one, for whoever describes or checks the service as a whole. */
import { dashboard } from './dashboard.ts'
import { gateway } from './gateway.ts'
import { routeTable } from './http/route-table.ts'

export const everyRoute = [gateway, dashboard].flatMap(routeTable)
