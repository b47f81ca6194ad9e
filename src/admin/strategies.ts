/** `/reports/strategies` and its API: what each routing strategy would have done with the logged requests. */
import { z } from 'zod'
import { StrategiesPage, type StrategiesView } from '../../views/reports/strategies.tsx'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { mayWrite } from '../model/users/permissions.ts'
import { getFormFeedback } from './form-feedback.ts'

const Asked = z.object({
  days: z.coerce.number().int().min(1).max(90).default(28).describe('How many days of the log are replayed.'),
  seed: z.coerce.number().int().min(0).max(1_000_000).default(1).describe('The same seed gives the same result.'),
})

/** Throws `busy` while too many replays wait. */
export const compareStrategies = createHandlers(requires('dashboard:read'), query(Asked), async (c) => {
  c.env.server?.timeout(c.req.raw, 0)
  const question = { ...c.req.valid('query'), now: c.env.clock.now() }
  return c.json(await c.env.replayer.ask('strategies', question, c.req.raw.signal))
})

const PageQuery = Asked.extend({ run: z.literal('1').optional().describe('Starts the replay.') })

/** The page shows the progress and polls until the result is there. Throws `busy` while too many replays wait. */
export const showStrategies = createHandlers(requires('dashboard:read'), query(PageQuery), (c) => {
  const { run, ...asked } = c.req.valid('query')
  const { clock, replayer, settings } = c.env
  const question = { ...asked, now: clock.now() }
  const recent = replayer.recent('strategies', question)
  const known: StrategiesView['state'] = recent && { kind: 'done', value: recent }
  const value: StrategiesView = {
    generatedAt: iso(clock.now()),
    asked,
    state: known ?? (run ? replayer.look('strategies', question) : null),
    strategy: settings.current().routingStrategy,
    isEditable: mayWrite(c.var.principal.grants),
    version: settings.version(),
    ...getFormFeedback(c),
  }
  return reply(c, value, StrategiesPage)
})
