/** `/key`: the page of a key for its holder, without a dashboard user (setting `keyHolderPage`). */
import { z } from 'zod'
import { commit } from '../../../db/commit.ts'
import {
  EnterKeyPage,
  type EnterKeyProps,
  KeyHolderPage,
  type KeyHolderView,
  NewSecretPage,
} from '../../../views/keys/holder.tsx'
import {
  enterKey,
  holderActor,
  type KeyHolder,
  keyHolder,
  leaveKey,
  openSession,
  requireKeyHolder,
  requireKeyPage,
} from '../../auth/key-holder.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { open } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed, reply } from '../../http/reply.tsx'
import { viewerZone } from '../../http/viewer-clock.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { iso } from '../../lib/iso.ts'
import { localDate } from '../../lib/zoned-days.ts'
import { toApiKey } from '../../model/keys/api-key-view.ts'
import { getKey, regenerateKey } from '../../model/keys/api-keys.ts'
import { keyState } from '../../model/keys/key-list.ts'
import { LogQuery } from '../../model/log/request-log-query.ts'
import { ReportQuery } from '../../model/reports/reports.ts'
import { listedModels } from '../choices.ts'
import { getFormFeedback } from '../form-feedback.ts'
import { poolLeftFor } from '../own-overview.ts'
import { connectionFor } from './keys.ts'

const REASON = 'anyone with an API key, if the page is on'
/** Shown on the page. */
const REQUESTS = 50
const DAYS = 14

/** Asks for the key, or shows its use. Throws `not_found` while the page is off, and `ip_forbidden`. */
export const showKeyPage = createHandlers(open(REASON, { check: requireKeyPage }), async (c) => {
  const holder = await keyHolder(c)
  if (holder) return reply(c, await getView(c, holder), KeyHolderPage)
  return reply(c, { isKeyNeeded: true, ...getFormFeedback(c) } satisfies EnterKeyProps, EnterKeyPage)
})

const Entry = z.strictObject({
  secret: z.string().trim().min(1).max(512).describe('The API key.'),
})

/** Throws as above, `invalid_key` and `key_rate_limited`. */
export const enterKeyPage = createHandlers(
  open(REASON, { audit: 'key_page_opened', check: requireKeyPage }),
  body(Entry),
  async (c) => {
    const holder = await enterKey(c, c.req.valid('json').secret)
    return proceed(c, { keyId: holder.policy.id, name: holder.policy.name }, '/key')
  },
)

export const leaveKeyPage = createHandlers(
  open(REASON, { audit: 'key_page_closed', check: requireKeyPage }),
  async (c) => {
    await leaveKey(c)
    return proceed(c, null, '/key')
  },
)

/** Replaces the secret, if the owner allows it. Throws as above, `key_session_ended`, `holder_may_not_regenerate`. */
export const renewOwnSecret = createHandlers(
  open(REASON, { audit: 'api_key_regenerated', check: checkHolder }),
  async (c) => {
    const { policy, keyHash } = await requireKeyHolder(c)
    const { db, random, ownChanges } = c.env
    await ownChanges.take(`key ${policy.id}`, 'key_rate_limited')
    const scope = { keyId: policy.id }
    const actor = holderActor(c, policy)
    const { row, key } = await commit(db, async (tx) => {
      const now = await getKey(tx, policy.id, scope)
      if (now.keyHash !== keyHash) throw new AppError('key_session_ended') // another secret was faster
      if (!now.holderMayRegenerate) throw new AppError('holder_may_not_regenerate')
      const issued = await regenerateKey(tx, policy.id, { actor, scope, random })
      await openSession(c, tx, issued.row.keyHash)
      return issued
    })
    return reply(c, { id: row.id, name: row.name, key }, NewSecretPage)
  },
)

async function checkHolder(c: Ctx): Promise<void> {
  await requireKeyPage(c)
  await requireKeyHolder(c)
}

const getView = async (c: Ctx, { policy, keyHash }: KeyHolder): Promise<KeyHolderView> => {
  const { db, clock, reader } = c.env
  const now = clock.now()
  const scope = { keyId: policy.id }
  const row = await getKey(db, policy.id, scope)
  const apiKey = toApiKey(row, now)
  const reads = reader.for(`key ${policy.id}`)
  const hiddenFields = { scope, hidesAccounts: true, hidesKeys: false }
  const [logs, report] = await Promise.all([
    reads.requestLogs(LogQuery.parse({ limit: REQUESTS }), { ...hiddenFields, sensitive: false }),
    reads.report(lastDays(c, now), hiddenFields, now),
  ])
  return {
    generatedAt: iso(now),
    name: row.name,
    keyPrefix: row.keyPrefix,
    state: keyState(apiKey),
    expiresAt: apiKey.expiresAt,
    usageSummary: apiKey.usageSummary,
    limits: apiKey.limits,
    days: report.daily.map(({ date, requests, errors, inputTokens, outputTokens, costUsd }) => ({
      date,
      requests,
      errors,
      tokens: inputTokens + outputTokens,
      costUsd,
    })),
    requests: logs.requests.map(
      ({ id, requestedAt, model, status, result, errorCode, httpStatus, tokens, costUsd, latencyFirstTokenMs }) => ({
        id,
        requestedAt,
        model,
        status,
        result,
        errorCode,
        httpStatus,
        tokens,
        costUsd,
        latencyFirstTokenMs,
      }),
    ),
    models: listedModels(c, policy).map(({ id }) => id),
    pool: poolLeftFor(c, policy),
    connection: connectionFor(c, { ...row, keyHash }),
    mayRegenerate: row.holderMayRegenerate,
    ...getFormFeedback(c),
  }
}

const lastDays = (c: Ctx, now: number): ReportQuery => {
  const timezone = viewerZone(c) ?? 'UTC'
  const end_date = localDate(now, timezone)
  return ReportQuery.parse({
    start_date: iso(Date.parse(end_date) - (DAYS - 1) * DAY_MS).slice(0, 10),
    end_date,
    timezone,
  })
}
