/** Both route tables combined, for documentation and checks. */
import { dashboard } from './dashboard.ts'
import { gateway } from './gateway.ts'
import { routeTable } from './http/route-table.ts'

export const everyRoute = [gateway, dashboard].flatMap(routeTable)
