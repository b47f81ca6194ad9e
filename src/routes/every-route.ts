/** Both route tables combined, for documentation and checks. */

import { routeTable } from '../http/route-table.ts'
import { dashboard } from './dashboard.ts'
import { gateway } from './gateway.ts'

export const everyRoute = [gateway, dashboard].flatMap(routeTable)
