/** `/api/api-keys/`: API keys of clients. */
import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import { shownKeyAt } from '../../views/keys/new.tsx'
import { actor, demand } from '../auth/principal.ts'
import { requireKeyScope, requireScope } from '../auth/view-scope.ts'
import type { Ctx } from '../boot/bindings.ts'
import { requiresOwn, writesKeys } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { proceed, reply } from '../http/reply.tsx'
import { type ShownKey, shownKey } from '../model/keys/api-key-view.ts'
import {
  createKey,
  deleteKey,
  getKey,
  type IssuedKey,
  listKeys,
  regenerateKey,
  updateKey,
} from '../model/keys/api-keys.ts'
import { KeyPatch, NewKey } from '../model/keys/key-input.ts'
import { newMemberKey, requireMemberPatch } from '../model/keys/member-keys.ts'
import { keyBody } from './key-form.ts'
import { connectionFor } from './key-pages.ts'
import { storeSettings } from './settings.ts'

export const listApiKeys = createHandlers(requiresOwn('api_keys:read'), (c) => {
  const now = c.env.clock.now()
  const scope = requireScope(c.var.principal, 'api_keys:read')
  return c.json(listKeys(c.env.db, scope).map((row) => shownKey(row, now, scope)))
})

const KeyToCreate = NewKey.extend({
  requireKeys: z
    .boolean()
    .optional()
    .describe('Also turns `apiKeyAuthEnabled` on, which needs `security:write` and a recent confirmation.'),
})

/** Throws `validation_error`, `key_limit_reached`, and with `requireKeys` what a change of that setting does. */
export const createApiKey = createHandlers(writesKeys({ audit: 'api_key_created' }), keyBody(KeyToCreate), (c) => {
  const { requireKeys = false, ...input } = c.req.valid('json')
  const doing = getDoing(c)
  const issued = commit(c.env.db, (tx) => {
    const own = ownRules(c, doing)
    const made = createKey(tx, own ? newMemberKey(tx, input, own) : input, doing)
    if (requireKeys) storeSettings(tx, { apiKeyAuthEnabled: true }, { principal: c.var.principal, who: doing.actor })
    return made
  })
  return show(c, issued, { doing, isRenewed: false })
})

export const editApiKey = createHandlers(writesKeys({ audit: 'api_key_updated' }), keyBody(KeyPatch), (c) => {
  const doing = getDoing(c)
  const row = commit(c.env.db, (tx) => {
    const patch = c.req.valid('json')
    const own = ownRules(c, doing)
    if (own) requireMemberPatch(getKey(tx, getPathId(c), doing.scope), patch, own)
    return updateKey(tx, getPathId(c), patch, doing)
  })
  return proceed(c, shownKey(row, doing.actor.at, doing.scope), `/keys/${row.id}?done=api_key_updated`)
})

export const regenerateApiKey = createHandlers(writesKeys({ audit: 'api_key_regenerated' }), (c) => {
  const doing = getDoing(c)
  return show(
    c,
    commit(c.env.db, (tx) => regenerateKey(tx, getPathId(c), doing)),
    { doing, isRenewed: true },
  )
})

export const deleteApiKey = createHandlers(writesKeys({ audit: 'api_key_deleted' }), (c) => {
  commit(c.env.db, (tx) => deleteKey(tx, getPathId(c), getDoing(c)))
  return proceed(c, null, '/keys?done=api_key_deleted')
})

/** The gate suffices for one's own key; assigning it to others, or to no one, needs `api_keys:assign`. */
const getDoing = (c: Ctx) => ({
  actor: actor(c),
  scope: requireKeyScope(c.var.principal),
  random: c.env.random,
  requireAssign: () => demand(c.var.principal, 'api_keys:assign'),
})

type Doing = ReturnType<typeof getDoing>

/** The bounds of users who manage only their own keys; null: there are none. */
const ownRules = ({ env }: Ctx, { scope, actor: { at } }: Doing) =>
  typeof scope === 'string'
    ? null
    : { ownerUserId: scope.ownerUserId, defaults: env.settings.current().memberKeyDefaults, now: at }

/** The only answer that contains the key; browsers also get the connection texts. */
const show = (c: Ctx, { row, key }: IssuedKey, { doing, isRenewed }: { doing: Doing; isRenewed: boolean }) => {
  const shown: ShownKey = { ...shownKey(row, doing.actor.at, doing.scope), key }
  return reply(
    c,
    shown,
    shownKeyAt(() => connectionFor(c, row), isRenewed),
  )
}
