/**
 * `/api/settings`: returns and changes settings, with an audit row in the same commit. The body is JSON, or the form of a
 * section, whose fields for objects are flat.
 */
import type { Next } from 'hono'
import { z } from 'zod'
import { commit, type Tx } from '../../../db/commit.ts'
import { actor, demand, type Principal, requireStepUp, requireWrite } from '../../auth/principal.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body, parse, withInput } from '../../http/body.ts'
import { requires, writes } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed } from '../../http/reply.tsx'
import { getPage } from '../../http/return-path.ts'
import { isSameValue } from '../../lib/same-value.ts'
import { type Actor, append } from '../../model/audit/audit.ts'
import { requireClaudeModels } from '../../model/catalog/claude-models-check.ts'
import { resumeRouted } from '../../model/egress/unrouted.ts'
import { guestPasswordHash } from '../../model/users/guest.ts'
import { countWithoutTotp, findPerson } from '../../model/users/people.ts'
import { holds, isAdminLevel } from '../../model/users/permissions.ts'
import { SETTING_NAMES, type SettingName, type Settings, SettingsPatch, securityNames } from '../../settings/schema.ts'
import { SECTIONS } from '../../settings/setting.ts'
import { readSettings, writeSettings } from '../../settings/store.ts'
import { ClaudeModelsForm } from '../claude-models-form.ts'
import { LimitRows, limitsIn } from '../keys/form.ts'

const KeyRulesForm = z
  .object({
    maxKeys: z.number().optional(),
    models: z.array(z.string()).default([]),
    expiresDays: z.number().nullable().optional(),
    /** Runs before `limits`. */
    unlimited: z.boolean().optional(),
    limits: LimitRows.default({}),
  })
  .transform(({ models, unlimited, limits, ...rules }) => ({
    ...rules,
    models: models.length > 0 ? models : null,
    limits: unlimited ? [] : limitsIn(limits),
  }))

/** Accepts JSON or a form. The handler reads `c.req.valid('json')` in both cases. Throws the same errors as `body`. */
const settingsBody = <S extends z.ZodObject>(schema: S) => {
  const asJson = body(schema)
  const asForm = body(
    schema.extend({ memberKeyDefaults: KeyRulesForm.optional(), claudeModels: ClaudeModelsForm.optional() }),
  )
  const either = (c: Ctx, next: Next) => {
    if (!/form/.test(c.req.header('content-type') ?? '')) return asJson(c as never, next) // as: the same context
    return asForm(c as never, async () => {
      c.req.addValidatedData('json', parse(schema, c.req.valid('json' as never))) // as: set just before
      await next()
    })
  }
  return withInput(either as unknown as typeof asJson, asJson.input) // as: it provides the same value in the same place
}

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

export const getSettings = createHandlers(requires('dashboard:read'), async (c) => c.json(await toSettings(c)))

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

const answerChange = async (c: Ctx, { expectedVersion, ...patch }: z.output<typeof Patch>) => {
  await change(c, patch, expectedVersion)
  return proceed(c, await toSettings(c), backToSection(c))
}

/** The form's page at the saved section, which is part of the address. */
const backToSection = (c: Ctx): string => {
  const path = getPage(c)?.pathname ?? '/settings'
  const section = getSection(c)
  return section ? `${path}?done=settings_updated&section=${section}#${section}` : `${path}?done=settings_updated`
}

const getSection = (c: Ctx) => SECTIONS.find((name) => name === c.req.query('section'))

type SettingsView = Awaited<ReturnType<typeof toSettings>>

/** Also returns how many users a two-factor requirement would affect (spec §2); null for users who cannot set one. */
const toSettings = async (c: Ctx) => {
  const { db, settings } = c.env
  const { grants } = c.var.principal
  const mayRequire = holds(grants, 'security:write')
  const { egressRouting, egressDefaultPoolId, ...visible } = settings.current()
  return {
    ...visible,
    /** How accounts connect is hidden from users who may not see the proxies. */
    ...(holds(grants, 'ops:write') && { egressRouting, egressDefaultPoolId }),
    version: settings.version(),
    guestPasswordConfigured: (await guestPasswordHash(db)) !== null,
    usersWithoutTotpCount: mayRequire ? await countWithoutTotp(db, () => true) : null,
    adminsWithoutTotpCount: mayRequire ? await countWithoutTotp(db, ({ grants }) => isAdminLevel(grants)) : null,
  }
}

const change = async (c: Ctx, patch: Partial<Settings>, expectedVersion: number | undefined): Promise<void> => {
  const who = actor(c)
  // A form changes only its section, so changes elsewhere are kept.
  const isPartial = getSection(c) !== undefined
  await commit(c.env.db, (tx) =>
    storeSettings(tx, patch, { principal: c.var.principal, who, expectedVersion, isPartial }),
  )
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
export const storeSettings = async (
  tx: Tx,
  patch: Partial<Settings>,
  { principal, who, ...writing }: Storing,
): Promise<void> => {
  const before = (await readSettings(tx)).values
  requireRights(principal, before, { patch, now: who.at })
  if (REQUIREMENTS.some((name) => patch[name] === true && !before[name])) await requireOwnTotp(tx, principal)
  const changed = await writeSettings(tx, patch, { now: who.at, ...writing })
  if (changed.includes('claudeModels')) await requireClaudeModels(tx, patch.claudeModels)
  if (changed.includes('egressRouting') || changed.includes('egressDefaultPoolId')) await resumeRouted(tx, who)
  if (changed.length > 0)
    await append(tx, who, 'settings_updated', { details: { changes: changes(changed, before, patch) } })
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
const requireOwnTotp = async (tx: Tx, principal: Principal): Promise<void> => {
  const person = principal.kind === 'account' ? await findPerson(tx, principal.id) : null
  if (!person?.row.totpSecretSealed) throw new AppError('invalid_totp_config')
}

interface Change {
  patch: Partial<Settings>
  /** ms since epoch */
  now: number
}

const changes = (names: readonly SettingName[], before: Settings, patch: Partial<Settings>) =>
  Object.fromEntries(names.map((name) => [name, { from: before[name], to: patch[name] }]))
