/** `/settings/search`: finds settings, and the other places of the settings pages. */
import { z } from 'zod'
import type { TabId } from '../../../views/settings/frame.tsx'
import { type Found, type Search, SearchPage } from '../../../views/settings/search.tsx'
import type { ShownField } from '../../../views/settings/section.tsx'
import type { Ctx } from '../../boot/bindings.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { query } from '../../http/query.ts'
import { reply } from '../../http/reply.tsx'
import { holds, type Permission } from '../../model/users/permissions.ts'
import { STICKY_PAGE } from '../sticky-sessions.ts'
import { getFrame, getTab, shownFields, TAB_OF } from './frame.ts'

const SearchQuery = z.object({ q: z.string().trim().max(100).default(''), changed: z.literal('1').optional() })

export const searchSettings = createHandlers(requires('dashboard:read'), query(SearchQuery), async (c) => {
  const { q, changed } = c.req.valid('query')
  const isChangedOnly = changed === '1'
  const words = q.toLowerCase().split(/\s+/)
  const found = (await settingsFor(c, { isChangedOnly })).filter(({ label, help, field, tab }) => {
    const text = [label, help, tab, field?.name ?? '', ...getWords(field)].join(' ').toLowerCase()
    return words.every((word) => text.includes(word))
  })
  return reply(c, { frame: getFrame(c, null, q), isChangedOnly, found } satisfies Search, SearchPage)
})

/** All settings and other places of the settings pages that the user may open. */
export const settingsFor = async (c: Ctx, { isChangedOnly = false } = {}): Promise<Found[]> => [
  ...(await shownFields(c)).filter(({ isChanged }) => isChanged || !isChangedOnly).map(foundField),
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

/** Places outside the settings that users search for here. */
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
