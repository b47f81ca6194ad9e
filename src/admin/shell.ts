/**
 * What every page loads: `/footer`, fetched again when what it says has changed, and `/search`, the command palette.
 */

import { z } from 'zod'
import { Footer, type FooterProps } from '../../views/footer.tsx'
import { type Hit, type Palette, PalettePage, PaletteResults } from '../../views/palette.tsx'
import { getScope } from '../auth/view-scope.ts'
import type { Ctx } from '../boot/bindings.ts'
import { VERSION } from '../boot/version.ts'
import { requires, signedIn } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { representation } from '../http/representation.ts'
import { getService } from '../http/service.ts'
import { naturalOrder } from '../lib/natural-order.ts'
import { keyNames } from '../model/log/request-log-choices.ts'
import { listPeople } from '../model/users/people.ts'
import { holds, type Permission } from '../model/users/permissions.ts'
import { accountChoices } from './choices.ts'
import { TABS } from './settings/frame.ts'
import { settingsFor } from './settings/search.ts'

export const showFooter = createHandlers(requires('dashboard:read'), (c) => {
  const value: FooterProps = {
    version: VERSION,
    isGuest: c.var.principal.kind === 'guest',
    service: getService(c),
  }
  return reply(c, value, Footer)
})

const PaletteQuery = z.object({ q: z.string().trim().max(200).default('') })

/** Only results the user may open. */
export const showPalette = createHandlers(signedIn(), query(PaletteQuery), async (c) => {
  const { q } = c.req.valid('query')
  const value: Palette = { q, found: await hitsFor(c, q) }
  return reply(c, value, representation(c) === 'fragment' ? PaletteResults : PalettePage)
})

const MAX_HITS = 12

const hitsFor = async (c: Ctx, q: string): Promise<Hit[]> => {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean)
  const isFound = ({ kind, label, also = '' }: Hit & { also?: string }) => {
    const text = `${kind} ${label} ${also}`.toLowerCase()
    return words.every((word) => text.includes(word))
  }
  return [
    ...requestHits(c, q),
    ...(words.length === 0 ? PLACES.filter(isOpenTo(c)) : (await everything(c)).filter(isFound)),
  ]
    .slice(0, MAX_HITS)
    .map(({ kind, label, href }) => ({ kind, label, href }))
}

/** A pasted request id opens the log, whether or not the request is still there. */
const requestHits = (c: Ctx, q: string): Hit[] =>
  /^req_[\w-]{8,}$/.test(q) && holds(c.var.principal.grants, 'dashboard:read', 'own')
    ? [{ kind: 'Request', label: q, href: `/logs?search=${encodeURIComponent(q)}` }]
    : []

const everything = async (c: Ctx): Promise<(Hit & { also?: string })[]> => {
  const { grants } = c.var.principal
  const keyScope = getScope(c.var.principal, 'api_keys:read')
  const keys = keyScope ? (await keyNames(c.env.db, keyScope)).toSorted((a, b) => naturalOrder(a.name, b.name)) : []
  const users = holds(grants, 'users:manage') ? (await listPeople(c.env.db)).map(({ row }) => row) : []
  return [
    ...PLACES.filter(isOpenTo(c)),
    ...(holds(grants, 'accounts:read') ? accountChoices(c) : []).map(({ id, name }) => ({
      kind: 'Account',
      label: name,
      href: `/accounts/${id}`,
    })),
    ...keys.map(({ id, name }) => ({ kind: 'Key', label: name, href: `/keys/${id}` })),
    ...users.map(({ id, username, displayName, email }) => ({
      kind: 'User',
      label: displayName ?? username,
      also: `${username} ${email ?? ''}`,
      href: `/settings/access#person-${id}`,
    })),
    ...(holds(grants, 'dashboard:read') ? await settingsFor(c) : []).map(({ label, help, href }) => ({
      kind: 'Setting',
      label,
      also: help,
      href,
    })),
  ]
}

interface Place extends Hit {
  /** null: every signed-in user. */
  needs: Permission | null
  /** The scope `own` is enough. */
  isOwn?: true
}

const PLACES: readonly Place[] = [
  { kind: 'Page', label: 'Overview', href: '/dashboard', needs: 'dashboard:read', isOwn: true },
  { kind: 'Page', label: 'Accounts', href: '/accounts', needs: 'accounts:read' },
  { kind: 'Page', label: 'Keys', href: '/keys', needs: 'api_keys:read', isOwn: true },
  { kind: 'Page', label: 'Logs', href: '/logs', needs: 'dashboard:read', isOwn: true },
  { kind: 'Page', label: 'Captures', href: '/logs/captures', needs: 'security:write' },
  { kind: 'Page', label: 'Conversations', href: '/logs/conversations', needs: 'conversations:read' },
  { kind: 'Page', label: 'Reports', href: '/reports', needs: 'dashboard:read', isOwn: true },
  { kind: 'Page', label: 'Compare strategies', href: '/reports/strategies', needs: 'dashboard:read' },
  { kind: 'Page', label: 'Routing simulator', href: '/accounts/simulator', needs: 'accounts:read' },
  { kind: 'Page', label: 'Health check', href: '/doctor', needs: 'dashboard:read' },
  ...TABS.map(({ label, path, needs }) => ({ kind: 'Page', label, href: path, needs })),
  { kind: 'Page', label: 'My account', href: '/me', needs: null },
  { kind: 'Page', label: 'Docs', href: '/docs', needs: null },
  { kind: 'Page', label: 'API reference', href: '/docs/api', needs: null },
  { kind: 'Action', label: 'Add account', href: '/accounts/new', needs: 'accounts:write' },
  { kind: 'Action', label: 'Import accounts from files', href: '/accounts/new/import', needs: 'accounts:write' },
  { kind: 'Action', label: 'Import from another tool', href: '/accounts/import', needs: 'accounts:write' },
  { kind: 'Action', label: 'Create key', href: '/keys/new', needs: 'api_keys:write', isOwn: true },
  { kind: 'Action', label: 'Invite user', href: '/settings/access#people', needs: 'users:manage' },
  { kind: 'Action', label: 'Back up now', href: '/settings/data#backup-list', needs: 'ops:write' },
  { kind: 'Action', label: 'Change password', href: '/me#password', needs: null },
  { kind: 'Action', label: 'Set up two-factor authentication', href: '/me/two-factor', needs: null },
  { kind: 'Action', label: 'Choose a time zone', href: '/me#clock', needs: null },
]

const isOpenTo =
  (c: Ctx) =>
  ({ needs, isOwn }: Place): boolean =>
    needs === null ? c.var.principal.kind === 'account' : holds(c.var.principal.grants, needs, isOwn ? 'own' : 'all')
