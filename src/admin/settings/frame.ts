/** The frame of every settings page: visible tabs, and how many settings differ from their defaults. */
import type { Frame, TabId } from '../../../views/settings/frame.tsx'
import type { ShownField, ShownSettings } from '../../../views/settings/section.tsx'
import type { Ctx } from '../../boot/bindings.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import { listPools } from '../../model/egress/endpoints.ts'
import { holds, mayWrite, type Permission } from '../../model/users/permissions.ts'
import { getFields, type SettingField } from '../../settings/fields.ts'
import { SECTIONS, type Section } from '../../settings/setting.ts'
import { accountChoices, listedModels } from '../choices.ts'
import { claudeOffers } from '../claude-models-form.ts'

interface Tab {
  id: string
  path: string
  label: string
  /** null: everyone with access. */
  needs: Permission | null
}

export const TABS = [
  { id: 'general', path: '/settings', label: 'Access & keys', needs: null },
  { id: 'access', path: '/settings/access', label: 'Users', needs: 'users:manage' },
  { id: 'routing', path: '/settings/routing', label: 'Routing', needs: 'dashboard:read' },
  { id: 'sources', path: '/settings/sources', label: 'Model sources', needs: 'dashboard:read' },
  { id: 'automations', path: '/settings/automations', label: 'Automations', needs: 'dashboard:read' },
  { id: 'network', path: '/settings/network', label: 'Network', needs: 'dashboard:read' },
  { id: 'alerts', path: '/settings/alerts', label: 'Alerts', needs: 'ops:write' },
  { id: 'data', path: '/settings/data', label: 'Data', needs: 'dashboard:read' },
  { id: 'audit', path: '/audit', label: 'Audit log', needs: 'audit:read' },
  { id: 'about', path: '/settings/about', label: 'About', needs: 'dashboard:read' },
] as const satisfies readonly Tab[]

export const getFrame = (c: Ctx, tab: TabId | null, search = ''): Frame => ({
  tab,
  tabs: TABS.filter(({ needs }) => needs === null || holds(c.var.principal.grants, needs)).map(
    ({ id, path, label }) => ({ path, label, isCurrent: id === tab }),
  ),
  changed: maySee(c) ? getFields(c.env.settings.current()).filter(({ isChanged }) => isChanged).length : null,
  search,
})

export const getTab = (tab: TabId): (typeof TABS)[number] => TABS.find(({ id }) => id === tab)! // every id has a tab

const maySee = (c: Ctx): boolean => holds(c.var.principal.grants, 'dashboard:read')

/** The tab of each section. */
export const TAB_OF: Record<Section, TabId> = {
  security: 'general',
  guests: 'general',
  clients: 'general',
  members: 'general',
  routing: 'routing',
  affinity: 'routing',
  claude: 'routing',
  windows: 'routing',
  planner: 'routing',
  resets: 'routing',
  overflow: 'sources',
  limits: 'routing',
  timeouts: 'routing',
  egress: 'network',
  retention: 'data',
  backups: 'data',
  alerts: 'alerts',
}

/** The settings of the tab; null: the user may not see settings. */
export const settingsOfTab = async (c: Ctx, tab: TabId): Promise<ShownSettings | null> => {
  if (!maySee(c)) return null
  const saved = SECTIONS.find((section) => section === c.req.query('section'))
  return {
    version: c.env.settings.version(),
    fields: (await shownFields(c)).filter(({ section }) => TAB_OF[section] === tab),
    saved: c.req.query('done') === 'settings_updated' ? (saved ?? null) : null,
  }
}

/** Settings whose choices are rows: accounts, models, pools. */
const CONTROLS: Partial<Record<string, (c: Ctx, field: SettingField) => Promise<SettingField>>> = {
  singleAccountId: async (c, field) => withAccounts(c, field),
  windowStartModel: async (c, field) => withModels(c, field),
  egressDefaultPoolId: (c, field) => withPools(c, field),
  overflowSourceId: async (c, field) => withSources(c, field),
  claudeModels: async (c, field) => ({ ...field, control: { kind: 'claude-models', offers: claudeOffers(c) } }),
  memberKeyDefaults: async (c, field) => withKeyModels(c, field),
}

export const shownFields = async (c: Ctx): Promise<ShownField[]> => {
  const { grants } = c.var.principal
  const isWriter = mayWrite(grants)
  const isGuard = holds(grants, 'security:write')
  const mayRun = holds(grants, 'ops:write')
  const fields = getFields(c.env.settings.current()).filter(({ section }) => section !== 'egress' || mayRun)
  return mapInOrder(fields, async (field) => ({
    ...((await CONTROLS[field.name]?.(c, field)) ?? field),
    isEditable: isWriter && (isGuard || !field.isSecurity),
  }))
}

const withModels = (c: Ctx, field: SettingField): SettingField => ({
  ...field,
  control: {
    kind: 'choice',
    choices: listedModels(c, null)
      .filter(({ id }) => c.env.pool.offers(id))
      .map(({ id, name }) => ({ value: id, label: name })),
  },
})

/** Only sources that could serve a turn of any client. */
const withSources = (c: Ctx, field: SettingField): SettingField => ({
  ...field,
  control: {
    kind: 'choice',
    choices: c.env.sources.enabled
      .filter(({ supports }) => supports.responses)
      .map(({ id, name }) => ({ value: id, label: name })),
  },
})

/** Their names are only for users who may see the proxies. */
const withPools = async (c: Ctx, field: SettingField): Promise<SettingField> => {
  const pools = holds(c.var.principal.grants, 'ops:write') ? await listPools(c.env.db) : []
  return { ...field, control: { kind: 'choice', choices: pools.map(({ id, name }) => ({ value: id, label: name })) } }
}
const withKeyModels = (c: Ctx, field: SettingField): SettingField => ({
  ...field,
  control: { kind: 'key-rules', models: listedModels(c, null).map(({ id }) => id) },
})

/** Accounts are chosen by name, masked for users who do not manage them. */
const withAccounts = (c: Ctx, field: SettingField): SettingField => {
  const choices = accountChoices(c).map(({ id, name }) => ({ value: id, label: name }))
  return { ...field, control: { kind: 'choice', choices } }
}
