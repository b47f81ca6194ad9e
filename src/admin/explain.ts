/** `/api/explain`: which account a request with this model and key would get now, and why not the others. */
import { z } from 'zod'
import { ExplainPage } from '../../views/logs/explain.tsx'
import { demand } from '../auth/principal.ts'
import type { Ctx } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { type Explanation, explain } from '../model/explain.ts'
import type { KeyPolicy } from '../model/key-ring.ts'
import { keyHashOf } from '../model/request-log-choices.ts'
import { accountChoices } from './account-choices.ts'
import { type Logs, optionsOf } from './logs-page.ts'

const ExplainQuery = z.object({
  model: z.string().trim().max(200).default('').describe('The requested model. Empty: any.'),
  key: z.string().max(100).default('').describe('ID of the key. Empty: no key.'),
})

/**
 * Names are masked for those who do not work with accounts. Throws `permission_required` for a key, `not_found`, and
 * `validation_error` for a parameter nobody knows: the answer would be to another question than the one asked.
 */
export const explainChoice = createHandlers(requires('accounts:read'), query(ExplainQuery.strict()), (c) =>
  c.json(explanationOf(c, c.req.valid('query'))),
)

export interface ExplainView {
  generatedAt: string
  asked: z.output<typeof ExplainQuery>
  options: Logs['options']
  /** null: nothing was asked yet. */
  explanation: Explanation | null
}

/** `GET /logs/explain`: the form, and below it the answer. */
export const showExplain = createHandlers(requires('accounts:read'), query(ExplainQuery), (c) => {
  const asked = c.req.valid('query')
  const isAsked = c.req.query('model') !== undefined || c.req.query('key') !== undefined
  const view: ExplainView = {
    generatedAt: iso(c.env.clock.now()),
    asked,
    options: optionsOf(c),
    explanation: isAsked ? explanationOf(c, asked) : null,
  }
  return reply(c, view, ExplainPage)
})

const explanationOf = (c: Ctx, { model, key }: z.output<typeof ExplainQuery>): Explanation => {
  const { pool, settings, clock } = c.env
  return explain(pool, {
    model: model === '' ? null : model,
    key: key === '' ? null : keyOf(c, key),
    settings: settings.current(),
    names: new Map(accountChoices(c).map(({ id, name }) => [id, name])),
    now: clock.now(),
  })
}

const keyOf = (c: Ctx, id: string): KeyPolicy => {
  demand(c.var.principal, 'api_keys:read')
  const hash = keyHashOf(c.env.db, id)
  const policy = hash === null ? null : c.env.keys.byHash(hash)
  if (!policy)
    throw new AppError('not_found', { param: 'key', message: 'API key not found. It may have been deleted.' })
  return policy
}
