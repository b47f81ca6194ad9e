/** `/api/settings`: returns and changes settings, with an audit row in the same commit. */
import { z } from 'zod'
import { commit, type Tx } from '../../db/commit.ts'
import { actor, demand, type Principal, requireStepUp, requireWrite } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { requires, writes } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { proceed } from '../http/reply.tsx'
import { getPage } from '../http/return-path.ts'
import { type Actor, append } from '../model/audit/audit.ts'
import { resumeRouted } from '../model/egress/unrouted.ts'
import { guestPasswordHash } from '../model/users/guest.ts'
import { countWithoutTotp, findPerson } from '../model/users/people.ts'
import { holds, isAdminLevel } from '../model/users/permissions.ts'
import { isSameValue } from '../settings/same-value.ts'
import { SETTING_NAMES, type SettingName, type Settings, SettingsPatch, securityNames } from '../settings/schema.ts'
import { SECTIONS } from '../settings/setting.ts'
import { readSettings, writeSettings } from '../settings/store.ts'
import { settingsBody } from './settings-body.ts'

const Patch = SettingsPatch.extend({
  expectedVersion: z
    .int()
    .min(1)
    .optional()
    .describe('The `version` you read. If the settings have changed since, the request gets `settings_conflict`.'),
})

/** What `GET` adds to the settings. */
const readOnly = z
  .unknown()
  .optional()
  .describe('Read-only. Accepted and ignored, so that you can send back what `GET` returned.')

/** Accepts the whole result of `GET` (decisions §4). */
const Whole = Patch.extend({
  version: readOnly,
  guestPasswordConfigured: readOnly,
  usersWithoutTotpCount: readOnly,
  adminsWithoutTotpCount: readOnly,
} satisfies Record<Exclude<keyof SettingsView, SettingName>, z.ZodType>)

export const getSettings = createHandlers(requires('dashboard:read'), (c) => c.json(toSettings(c)))

const settingsChange = () =>
  writes({
    audit: 'settings_updated',
    sometimes: { permission: 'security:write', when: 'a security setting changes' },
  })

/**
 * Throws `settings_conflict`, `invalid_totp_config`, for security settings what `requires` does, and for others
 * `read_only_access`.
 */
export const changeSettings = createHandlers(settingsChange(), settingsBody(Patch), (c) =>
  answerChange(c, c.req.valid('json')),
)

/** The same, but also accepts read-only fields; missing fields stay unchanged. Throws as `changeSettings` does. */
export const putSettings = createHandlers(settingsChange(), settingsBody(Whole), (c) => {
  const { version, guestPasswordConfigured, usersWithoutTotpCount, adminsWithoutTotpCount, ...patch } =
    c.req.valid('json')
  return answerChange(c, patch)
})

const answerChange = (c: Ctx, { expectedVersion, ...patch }: z.output<typeof Patch>) => {
  change(c, patch, expectedVersion)
  return proceed(c, toSettings(c), backToSection(c))
}

/** The form's page at the saved section, which is part of the address. */
const backToSection = (c: Ctx): string => {
  const path = getPage(c)?.pathname ?? '/settings'
  const section = getSection(c)
  return section ? `${path}?done=settings_updated&section=${section}#${section}` : `${path}?done=settings_updated`
}

const getSection = (c: Ctx) => SECTIONS.find((name) => name === c.req.query('section'))

type SettingsView = ReturnType<typeof toSettings>

/** Also returns how many users a two-factor requirement would affect (spec §2); null for users who cannot set one. */
const toSettings = (c: Ctx) => {
  const { db, settings } = c.env
  const { grants } = c.var.principal
  const mayRequire = holds(grants, 'security:write')
  const { egressRouting, egressDefaultPoolId, ...visible } = settings.current()
  return {
    ...visible,
    /** How accounts connect is hidden from users who may not see the proxies. */
    ...(holds(grants, 'ops:write') && { egressRouting, egressDefaultPoolId }),
    version: settings.version(),
    guestPasswordConfigured: guestPasswordHash(db) !== null,
    usersWithoutTotpCount: mayRequire ? countWithoutTotp(db, () => true) : null,
    adminsWithoutTotpCount: mayRequire ? countWithoutTotp(db, ({ grants }) => isAdminLevel(grants)) : null,
  }
}

const change = (c: Ctx, patch: Partial<Settings>, expectedVersion: number | undefined): void => {
  const who = actor(c)
  // A form changes only its section, so changes elsewhere are kept.
  const isPartial = getSection(c) !== undefined
  commit(c.env.db, (tx) => storeSettings(tx, patch, { principal: c.var.principal, who, expectedVersion, isPartial }))
}

interface Storing {
  principal: Principal
  /** `principal` as an audit actor. */
  who: Actor
  expectedVersion?: number
  isPartial?: boolean
}

/**
 * Checks permissions and writes the settings with their audit row in the caller's commit, so that changes by other
 * processes are seen and are the row's `from`. Throws what `changeSettings` does.
 */
export const storeSettings = (tx: Tx, patch: Partial<Settings>, { principal, who, ...writing }: Storing): void => {
  const before = readSettings(tx).values
  requireRights(principal, before, { patch, now: who.at })
  if (REQUIREMENTS.some((name) => patch[name] === true && !before[name])) requireOwnTotp(tx, principal)
  const changed = writeSettings(tx, patch, { now: who.at, ...writing })
  if (changed.includes('egressRouting') || changed.includes('egressDefaultPoolId')) resumeRouted(tx, who)
  if (changed.length > 0) append(tx, who, 'settings_updated', { details: { changes: changes(changed, before, patch) } })
}

/**
 * `security:write` is required for security settings, the write check for others. Unchanged values are ignored, so that
 * a form may send all of them.
 */
const requireRights = (principal: Principal, before: Settings, { patch, now }: Change): void => {
  const isChanged = (name: SettingName): boolean => patch[name] !== undefined && !isSameValue(patch[name], before[name])
  const security = securityNames(patch)
  if (SETTING_NAMES.some((name) => isChanged(name) && !security.includes(name))) requireWrite(principal)
  if (!security.some(isChanged)) return
  demand(principal, 'security:write')
  requireStepUp(principal, now)
}

const REQUIREMENTS = ['totpRequiredOnLogin', 'totpRequiredForAdminRole'] as const

/** Users cannot require a second factor they lack (spec §5 Signing in 6). Throws `invalid_totp_config`. */
const requireOwnTotp = (tx: Tx, principal: Principal): void => {
  const person = principal.kind === 'account' ? findPerson(tx, principal.id) : null
  if (!person?.row.totpSecretSealed) throw new AppError('invalid_totp_config')
}

interface Change {
  patch: Partial<Settings>
  /** ms since epoch */
  now: number
}

const changes = (names: readonly SettingName[], before: Settings, patch: Partial<Settings>) =>
  Object.fromEntries(names.map((name) => [name, { from: before[name], to: patch[name] }]))
