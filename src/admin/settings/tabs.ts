/** `/settings/…`: routing, network and data; each section is saved with `PATCH /api/settings`. */
import type { Variable } from '../../../views/settings/about.tsx'
import { type Data, DataPage, Sizes, SizesPage } from '../../../views/settings/data.tsx'
import type { TabId } from '../../../views/settings/frame.tsx'
import { type EgressTarget, type Network, NetworkPage, type Page } from '../../../views/settings/network.tsx'
import { type Routing, RoutingPage } from '../../../views/settings/routing.tsx'
import { isLocal } from '../../auth/caller.ts'
import { mustConfirm } from '../../auth/principal.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { reply } from '../../http/reply.tsx'
import { representation } from '../../http/representation.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { chooseProxy, PROXY_VARIABLES } from '../../lib/env-proxy.ts'
import { iso } from '../../lib/iso.ts'
import { fileSize, type TableSizes } from '../../model/table-sizes.ts'
import { holds } from '../../model/users/permissions.ts'
import { getBackups, mayDownload } from '../backups.ts'
import { getEgressPage } from '../egress.ts'
import { getFirewall } from '../firewall.ts'
import { getFormFeedback } from '../form-feedback.ts'
import { toReader } from '../reader-for-caller.ts'
import { STICKY_PAGE } from '../sticky-sessions.ts'
import { getVariables } from './about.ts'
import { getFrame, settingsOfTab } from './frame.ts'

const getPage = (c: Ctx, tab: TabId): Page => {
  const { done, problem } = getFormFeedback(c)
  return { frame: getFrame(c, tab), now: iso(c.env.clock.now()), done, problem }
}

export const showRouting = createHandlers(requires('dashboard:read'), async (c) => {
  const value: Routing = {
    ...getPage(c, 'routing'),
    settings: await settingsOfTab(c, 'routing'),
    sessions: holds(c.var.principal.grants, 'ops:write') ? STICKY_PAGE : null,
  }
  return reply(c, value, RoutingPage)
})

/** Addresses of clients and proxies are only for operators. */
export const showNetwork = createHandlers(requires('dashboard:read'), async (c) => {
  const { grants } = c.var.principal
  const mayRun = holds(grants, 'ops:write')
  const variables = getVariables(c.env.env)
  const firewall = await getFirewall(c)
  const isGuard = holds(grants, 'security:write')
  const value: Network = {
    ...getPage(c, 'network'),
    firewall,
    isGuard,
    callers: isGuard && firewall.mode === 'allow_all' ? await getCallers(c) : [],
    seen: mayRun ? { clientIp: c.var.clientIp, peer: c.var.peer, isLocal: isLocal(c) } : null,
    proxies: mayRun ? variables.filter(({ name }) => PROXY_NAMES.includes(name)) : null,
    egress: mayRun ? { targets: getTargets(c), variables: variables.filter(isEgress) } : null,
    settings: mayRun ? await settingsOfTab(c, 'network') : null,
    accountProxies: mayRun ? await getEgressPage(c) : null,
  }
  return reply(c, value, NetworkPage)
})

const MAX_CALLERS = 12

/** The page works without them. */
const getCallers = (c: Ctx): Promise<string[]> =>
  toReader(c)
    .recentCallers(c.env.clock.now() - DAY_MS, MAX_CALLERS)
    .catch(() => [])

/** Environment variables about reverse proxies. */
const PROXY_NAMES = [
  'SLUICE_FIREWALL_TRUST_PROXY_HEADERS',
  'SLUICE_FIREWALL_TRUSTED_PROXY_CIDRS',
  'SLUICE_PROXY_UNAUTHENTICATED_CLIENT_CIDRS',
  'SLUICE_DASHBOARD_AUTH_MODE',
  'SLUICE_DASHBOARD_AUTH_PROXY_HEADER',
  'SLUICE_PUBLIC_URL',
]

const isEgress = ({ name }: Variable): boolean =>
  PROXY_VARIABLES.includes(name.toLowerCase()) || name === 'SLUICE_UPSTREAM_WEBSOCKET_TRUST_ENV'

const getTargets = ({ env: { env } }: Ctx): EgressTarget[] => {
  const urls = [env.UPSTREAM_BASE_URL, env.AUTH_BASE_URL, env.REALTIME_BASE_URL]
  return [...new Set(urls.map((url) => new URL(url).origin))].map((origin) => {
    const choice = chooseProxy(origin, env.raw)
    return {
      origin,
      variable: choice.kind === 'direct' ? null : choice.variable,
      why: choice.kind === 'invalid' ? choice.why : null,
    }
  })
}

export const showData = createHandlers(requires('dashboard:read'), async (c) => {
  const { principal } = c.var
  const value: Data = {
    ...getPage(c, 'data'),
    settings: await settingsOfTab(c, 'data'),
    file: await fileSize(c.env.db),
    backups: holds(principal.grants, 'ops:write') ? (await getBackups(c)).backups : null,
    download: mayDownload(principal) ? (mustConfirm(principal, c.env.clock.now()) ? 'confirm' : 'ready') : null,
    hasSizes: holds(principal.grants, 'ops:write'),
  }
  return reply(c, value, DataPage)
})

/** Loaded separately, because it counts every row. Throws `busy` if that takes too long. */
export const showTableSizes = createHandlers(requires('ops:write'), async (c) => {
  const sizes: TableSizes = await toReader(c).tableSizes()
  return reply(c, sizes, representation(c) === 'page' ? SizesPage : Sizes)
})
