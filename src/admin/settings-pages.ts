/** `/settings/…`: routing, network, data and a settings search; each section is saved with `PATCH /api/settings`. */
import { z } from 'zod'
import type { Variable } from '../../views/settings/about.tsx'
import { type Data, DataPage, Sizes, SizesPage } from '../../views/settings/data.tsx'
import type { TabId } from '../../views/settings/frame.tsx'
import { type EgressTarget, type Network, NetworkPage, type Page } from '../../views/settings/network.tsx'
import { type Routing, RoutingPage } from '../../views/settings/routing.tsx'
import { type Found, type Search, SearchPage } from '../../views/settings/search.tsx'
import type { ShownField } from '../../views/settings/section.tsx'
import { isLocal } from '../auth/caller.ts'
import { mustConfirm } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { representation } from '../http/representation.ts'
import { DAY_MS } from '../lib/durations.ts'
import { chooseProxy, PROXY_VARIABLES } from '../lib/env-proxy.ts'
import { iso } from '../lib/iso.ts'
import { fileSize, type TableSizes } from '../model/table-sizes.ts'
import { holds, type Permission } from '../model/users/permissions.ts'
import { getVariables } from './about.ts'
import { getBackups, mayDownload } from './backups.ts'
import { getEgressPage } from './egress.ts'
import { getFirewall } from './firewall.ts'
import { getFormFeedback } from './form-feedback.ts'
import { toReader } from './reader-for-caller.ts'
import { getFrame, getTab, settingsOfTab, shownFields, TAB_OF } from './settings-frame.ts'
import { STICKY_PAGE } from './sticky-sessions.ts'

const getPage = (c: Ctx, tab: TabId): Page => {
  const { done, problem } = getFormFeedback(c)
  return { frame: getFrame(c, tab), now: iso(c.env.clock.now()), done, problem }
}

export const showRouting = createHandlers(requires('dashboard:read'), (c) => {
  const value: Routing = {
    ...getPage(c, 'routing'),
    settings: settingsOfTab(c, 'routing'),
    sessions: holds(c.var.principal.grants, 'ops:write') ? STICKY_PAGE : null,
  }
  return reply(c, value, RoutingPage)
})

/** Addresses of clients and proxies are only for operators. */
export const showNetwork = createHandlers(requires('dashboard:read'), async (c) => {
  const { grants } = c.var.principal
  const mayRun = holds(grants, 'ops:write')
  const variables = getVariables(c.env.env)
  const firewall = getFirewall(c)
  const isGuard = holds(grants, 'security:write')
  const value: Network = {
    ...getPage(c, 'network'),
    firewall,
    isGuard,
    callers: isGuard && firewall.mode === 'allow_all' ? await getCallers(c) : [],
    seen: mayRun ? { clientIp: c.var.clientIp, peer: c.var.peer, isLocal: isLocal(c) } : null,
    proxies: mayRun ? variables.filter(({ name }) => PROXY_NAMES.includes(name)) : null,
    egress: mayRun ? { targets: getTargets(c), variables: variables.filter(isEgress) } : null,
    settings: mayRun ? settingsOfTab(c, 'network') : null,
    accountProxies: mayRun ? getEgressPage(c) : null,
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
    settings: settingsOfTab(c, 'data'),
    file: fileSize(c.env.db),
    backups: holds(principal.grants, 'ops:write') ? (await getBackups(c)).backups : null,
    download: mayDownload(principal) ? (mustConfirm(principal, c.env.clock.now()) ? 'confirm' : 'ready') : null,
    hasSizes: holds(principal.grants, 'ops:write'),
  }
  return reply(c, value, DataPage)
})

/** Counts every row, so the page loads it separately. Throws `busy` when the file takes too long. */
export const showTableSizes = createHandlers(requires('ops:write'), async (c) => {
  const sizes: TableSizes = await toReader(c).tableSizes()
  return reply(c, sizes, representation(c) === 'page' ? SizesPage : Sizes)
})

const SearchQuery = z.object({ q: z.string().trim().max(100).default(''), changed: z.literal('1').optional() })

export const searchSettings = createHandlers(requires('dashboard:read'), query(SearchQuery), (c) => {
  const { q, changed } = c.req.valid('query')
  const isChangedOnly = changed === '1'
  const words = q.toLowerCase().split(/\s+/)
  const found = settingsFor(c, { isChangedOnly }).filter(({ label, help, field, tab }) => {
    const text = [label, help, tab, field?.name ?? '', ...getWords(field)].join(' ').toLowerCase()
    return words.every((word) => text.includes(word))
  })
  return reply(c, { frame: getFrame(c, null, q), isChangedOnly, found } satisfies Search, SearchPage)
})

/** All settings and other places of the settings pages that the user may open. */
export const settingsFor = (c: Ctx, { isChangedOnly = false } = {}): Found[] => [
  ...shownFields(c)
    .filter(({ isChanged }) => isChanged || !isChangedOnly)
    .map(foundField),
  ...(isChangedOnly ? [] : placesFor(c)),
]

const foundField = (field: ShownField): Found => {
  const { path, label: tab } = getTab(TAB_OF[field.section])
  const { label, help } = field
  return { href: `${path}#setting-${field.name}`, tab, label, help, field }
}

const getWords = (field: ShownField | null): string[] =>
  field?.control.kind === 'choice' ? field.control.choices.map(({ value }) => value.replaceAll('_', ' ')) : []

interface Place extends Omit<Found, 'field' | 'tab'> {
  tab: TabId
  needs: Permission
}

/** Places that are not settings, but that users look for there. */
const PLACES: readonly Place[] = [
  {
    tab: 'routing',
    href: STICKY_PAGE,
    label: 'Sticky sessions',
    help: 'The account each conversation stays on, and how to release it.',
    needs: 'ops:write',
  },
  {
    tab: 'network',
    href: '/settings/network#firewall',
    label: 'Firewall',
    help: 'Addresses and ranges that can connect (allow list, CIDR).',
    needs: 'dashboard:read',
  },
  {
    tab: 'network',
    href: '/settings/network#proxies',
    label: 'Trusted proxies',
    help: 'The reverse proxy in front of Sluice and its headers: X-Forwarded-For, Remote-User.',
    needs: 'ops:write',
  },
  {
    tab: 'network',
    href: '/settings/network#egress',
    label: 'Outbound proxies',
    help: 'Proxies and pools for accounts: HTTP, SOCKS, egress, exit address.',
    needs: 'ops:write',
  },
  {
    tab: 'network',
    href: '/settings/network#egress-environment',
    label: 'Proxy of the environment',
    help: 'How Sluice connects to ChatGPT: HTTPS_PROXY, NO_PROXY, egress.',
    needs: 'ops:write',
  },
  {
    tab: 'sources',
    href: '/settings/sources',
    label: 'Model sources',
    help: 'OpenAI-compatible servers beside your accounts: Ollama, vLLM, llama.cpp, LM Studio, OpenRouter.',
    needs: 'dashboard:read',
  },
  {
    tab: 'data',
    href: '/settings/data#backup-list',
    label: 'Backups',
    help: 'Back up now, or download a backup.',
    needs: 'ops:write',
  },
  {
    tab: 'data',
    href: '/settings/data#sizes',
    label: 'Database size',
    help: 'Disk space used by each table.',
    needs: 'ops:write',
  },
  {
    tab: 'access',
    href: '/settings/access',
    label: 'Users, invites and roles',
    help: 'Who can sign in, and what they can do.',
    needs: 'users:manage',
  },
  {
    tab: 'audit',
    href: '/audit',
    label: 'Audit log',
    help: 'Who changed what, when and from where.',
    needs: 'audit:read',
  },
  {
    tab: 'about',
    href: '/settings/about',
    label: 'Version, environment and licenses',
    help: 'Version, environment variables and included software.',
    needs: 'dashboard:read',
  },
]

const placesFor = (c: Ctx): Found[] =>
  PLACES.filter(({ needs }) => holds(c.var.principal.grants, needs)).map(({ href, label, help, tab }) => ({
    href,
    label,
    help,
    tab: getTab(tab).label,
    field: null,
  }))
