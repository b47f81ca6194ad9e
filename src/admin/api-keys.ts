/** `/api/api-keys/`: the keys of model clients. */
import type { Context } from 'hono'
import { commit } from '../../db/commit.ts'
import { actor, demand } from '../auth/principal.ts'
import type { AppEnv } from '../bindings.ts'
import { body } from '../http/body.ts'
import { requires, writes } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { type ShownKey, toApiKey } from '../model/api-key-view.ts'
import {
  createKey,
  deleteKey,
  type IssuedKey,
  KeyPatch,
  listKeys,
  NewKey,
  regenerateKey,
  updateKey,
} from '../model/api-keys.ts'

export const listApiKeys = createHandlers(requires('api_keys:read'), (c) => {
  const now = c.env.clock.now()
  return c.json(listKeys(c.env.db).map((row) => toApiKey(row, now)))
})

export const createApiKey = createHandlers(writes({ audit: 'api_key_created' }), body(NewKey), (c) => {
  const doing = doingOf(c)
  return c.json(
    shown(
      commit(c.env.db, (tx) => createKey(tx, c.req.valid('json'), doing)),
      doing.actor.at,
    ),
  )
})

export const editApiKey = createHandlers(writes({ audit: 'api_key_updated' }), body(KeyPatch), (c) => {
  const doing = doingOf(c)
  const row = commit(c.env.db, (tx) => updateKey(tx, c.req.param('id') ?? '', c.req.valid('json'), doing))
  return c.json(toApiKey(row, doing.actor.at))
})

export const regenerateApiKey = createHandlers(writes({ audit: 'api_key_regenerated' }), (c) => {
  const doing = { actor: actor(c), random: c.env.random }
  return c.json(
    shown(
      commit(c.env.db, (tx) => regenerateKey(tx, c.req.param('id') ?? '', doing)),
      doing.actor.at,
    ),
  )
})

export const deleteApiKey = createHandlers(writes({ audit: 'api_key_deleted' }), (c) => {
  commit(c.env.db, (tx) => deleteKey(tx, c.req.param('id') ?? '', actor(c)))
  return c.body(null, 204)
})

/** A key of one's own needs no more than the gate; giving it to others, or to nobody, needs `api_keys:assign`. */
const doingOf = (c: Context<AppEnv>) => ({
  actor: actor(c),
  random: c.env.random,
  demandAssign: () => demand(c.var.principal, 'api_keys:assign'),
})

const shown = ({ row, key }: IssuedKey, now: number): ShownKey => ({ ...toApiKey(row, now), key })
