/** `/api/explain`: which account a request with this model and key would use now, and why not the others. */
import { z } from 'zod'
import { SIMULATOR } from '../../views/accounts/links.ts'
import { type ExplainView, SimulatorPage } from '../../views/accounts/simulator.tsx'
import { demand } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import type { KeyPolicy } from '../model/keys/key-ring.ts'
import { type Explanation, explain } from '../model/log/explain.ts'
import { getKeyHash } from '../model/log/request-log-choices.ts'
import { choicesFor } from '../model/sources/sources.ts'
import { accountChoices } from './choices.ts'
import { getOptions } from './logs/logs.ts'

const ExplainQuery = z.object({
  model: z.string().trim().max(200).default('').describe('The requested model. Empty: any.'),
  key: z.string().max(100).default('').describe('ID of the key the request uses. Empty: none.'),
})

/**
 * Names are masked for users who do not manage accounts. Throws `permission_required` for a key, `not_found`, and
 * `validation_error` for an unknown parameter.
 */
export const explainChoice = createHandlers(requires('accounts:read'), query(ExplainQuery.strict()), async (c) =>
  c.json(await getExplanation(c, c.req.valid('query'))),
)

/** `GET /accounts/simulator`: the form, and below it the result. */
export const showSimulator = createHandlers(requires('accounts:read'), query(ExplainQuery), async (c) => {
  const asked = c.req.valid('query')
  const isAsked = c.req.query('model') !== undefined || c.req.query('key') !== undefined
  const view: ExplainView = {
    generatedAt: iso(c.env.clock.now()),
    asked,
    options: await getOptions(c),
    explanation: isAsked ? await getExplanation(c, asked) : null,
  }
  return reply(c, view, SimulatorPage)
})

/** The simulator's former path; bookmarks still work. */
export const leadToSimulator = createHandlers(requires('accounts:read'), (c) =>
  c.redirect(SIMULATOR + new URL(c.req.url).search, 301),
)

const getExplanation = async (c: Ctx, { model, key }: z.output<typeof ExplainQuery>): Promise<Explanation> => {
  const { pool, settings, clock, overflow } = c.env
  const policy = key === '' ? null : await toKey(c, key)
  const asked = policy?.enforcedModel ?? (model === '' ? null : model)
  const wanted = { model: asked, key: policy, capability: 'responses', isStreamed: true } as const
  return explain(pool, {
    bySource: { direct: choicesFor(c.env, wanted)[0] ?? null, overflow: overflow.choiceFor(asked, policy) },
    model: model === '' ? null : model,
    key: policy,
    share: c.env.shares.foresee(policy?.ownerUserId ?? null),
    settings: settings.current(),
    names: new Map(accountChoices(c).map(({ id, name }) => [id, name])),
    now: clock.now(),
  })
}

const toKey = async (c: Ctx, id: string): Promise<KeyPolicy> => {
  demand(c.var.principal, 'api_keys:read')
  const hash = await getKeyHash(c.env.db, id)
  const policy = hash === null ? null : c.env.keys.byHash(hash)
  if (!policy) throw new AppError('not_found', { param: 'key', message: 'This API key does not exist.' })
  return policy
}
