/** `/api/captures` and `/logs/captures`: starting, stopping and listing captures. What they hold is in `captured-requests.ts`. */

import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import { CaptureLine } from '../../views/capture-line.tsx'
import { CapturesPage, type CapturesView, type CaptureView } from '../../views/logs/captures.tsx'
import type { Choice } from '../../views/ui/select.tsx'
import { actor } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { body } from '../http/body.ts'
import { getCaptureNotice } from '../http/capture-notice.ts'
import { requires, signedIn } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { proceed, reply } from '../http/reply.tsx'
import { DAY_MS } from '../lib/durations.ts'
import { mapInOrder } from '../lib/in-order.ts'
import { iso } from '../lib/iso.ts'
import { maskEmails } from '../model/accounts/account-summary.ts'
import { append } from '../model/audit/audit.ts'
import type { Capture } from '../model/captures/capture.ts'
import { keyNames } from '../model/log/request-log-choices.ts'
import { holds } from '../model/users/permissions.ts'
import { accountChoices } from './choices.ts'
import { getFormFeedback } from './form-feedback.ts'
import { getHiddenFields } from './visibility.ts'

const MIB = 1024 * 1024

const NewCapture = z.strictObject({
  keyId: z
    .string()
    .max(100)
    .nullable()
    .optional()
    .describe('Capture requests with this key. Give this or `accountId`.'),
  accountId: z.string().max(100).nullable().optional().describe('Capture requests that use this account.'),
  minutes: z.int().min(15).max(10_080).describe('How long it runs, at most 7 days.'),
  maxMiB: z.int().min(1).max(4096).default(64).describe('It ends when its files have this size.'),
})

const looksOn = { or: 'conversations:read' } as const

export const listCaptures = createHandlers(requires('security:write', looksOn), async (c) =>
  c.json({ items: await captureViews(c) }),
)

export const showCaptures = createHandlers(requires('security:write', looksOn), async (c) => {
  const { grants } = c.var.principal
  const { done, problem } = getFormFeedback(c)
  const { hidesKeys, scope } = getHiddenFields(c.var.principal)
  const byName = (a: Choice, b: Choice) => a.name.localeCompare(b.name)
  const value: CapturesView = {
    generatedAt: iso(c.env.clock.now()),
    captures: await captureViews(c),
    done,
    problem,
    isGuard: holds(grants, 'security:write'),
    isReader: holds(grants, 'conversations:read'),
    choices: { keys: hidesKeys ? [] : (await keyNames(c.env.db, scope)).toSorted(byName), accounts: accountChoices(c) },
    retentionDays: c.env.settings.current().captureRetentionDays,
  }
  return reply(c, value, CapturesPage)
})

/** Throws `validation_error`, `capture_conflict`. */
export const startCapture = createHandlers(
  requires('security:write', { stepUp: true, audit: 'capture_started' }),
  body(NewCapture),
  async (c) => {
    const { keyId = null, accountId = null, minutes, maxMiB } = c.req.valid('json')
    const scope = await requireScope(c, { keyId: keyId || null, accountId: accountId || null })
    const { captures, db } = c.env
    const maxBytes = maxMiB * MIB
    await captures.requireRoom({ ...scope, maxBytes })
    const who = actor(c)
    const started = await commit(db, async (tx) => {
      const target = scope.keyId ?? scope.accountId
      await append(tx, who, 'capture_started', { target, details: { ...scope, minutes, maxMiB } })
      return captures.start({ ...scope, minutes, maxBytes, startedBy: { id: who.id, name: who.name ?? null } })
    })
    return proceed(c, await captureView(c, started), '/logs/captures?done=capture_started', 201)
  },
)

/** Exactly one, and it exists. */
const requireScope = async (c: Ctx, scope: Pick<Capture, 'keyId' | 'accountId'>): Promise<typeof scope> => {
  const { keyId, accountId } = scope
  if ((keyId === null) === (accountId === null)) throw wrongField('keyId', 'Choose either a key or an account')
  if (keyId !== null && !(await keyNames(c.env.db, 'all')).some(({ id }) => id === keyId))
    throw wrongField('keyId', 'does not exist')
  if (accountId !== null && !c.env.pool.get(accountId)) throw wrongField('accountId', 'does not exist')
  return scope
}

const wrongField = (field: string, message: string): AppError =>
  new AppError('validation_error', { param: field, details: { fields: { [field]: [message] } } })

/** Throws `not_found`. One that has ended stays as it is. */
export const endCapture = createHandlers(requires('security:write', { audit: 'capture_ended' }), async (c) => {
  const { captures, db } = c.env
  captures.running() // ends those whose time is over
  const capture = captureOf(c, getPathId(c))
  if (capture.endedAt === null)
    await commit(db, async (tx) => {
      const { id, bytes, requests, endedAt } = capture
      if (endedAt !== null) return // while this commit waited
      await append(tx, actor(c), 'capture_ended', { target: id, details: { reason: 'stopped', bytes, requests } })
      captures.end(capture, 'stopped')
    })
  return proceed(c, await captureView(c, capture), '/logs/captures?done=capture_ended')
})

/** Throws `not_found`. */
export const captureOf = (c: Ctx, id: string): Capture => {
  const capture = c.env.captures.get(id)
  if (!capture) throw new AppError('not_found', { message: 'Capture not found. It may have been deleted.' })
  return capture
}

/** The red line of every page, fetched again when a capture starts or ends. */
export const showCaptureLine = createHandlers(signedIn(), (c) =>
  reply(c, { notice: getCaptureNotice(c), isLive: true, now: iso(c.env.clock.now()) }, CaptureLine),
)

/** Newest first. */
export const captureViews = async (c: Ctx): Promise<CaptureView[]> => {
  c.env.captures.running() // ends those whose time is over
  return mapInOrder(c.env.captures.list(), (capture) => captureView(c, capture))
}

export const captureView = async (c: Ctx, capture: Capture): Promise<CaptureView> => {
  const { hidesAccounts, hidesKeys } = getHiddenFields(c.var.principal)
  const { keyId, accountId, startedBy, startedAt, endsAt, endedAt, maxBytes } = capture
  const key = keyId === null ? undefined : (await keyNames(c.env.db, 'all')).find(({ id }) => id === keyId)
  const account = accountId === null ? null : c.env.pool.get(accountId)
  const { captureRetentionDays } = c.env.settings.current()
  return {
    id: capture.id,
    isRunning: endedAt === null,
    keyId: hidesKeys ? null : keyId,
    keyName: hidesKeys ? null : (key?.name ?? null),
    accountId: hidesAccounts ? null : accountId,
    accountName: account ? (hidesAccounts ? maskEmails(account.displayName) : account.displayName) : null,
    startedBy: startedBy.name ?? startedBy.id,
    startedAt: iso(startedAt),
    endsAt: iso(endsAt),
    endedAt: endedAt === null ? null : iso(endedAt),
    endReason: capture.endReason,
    deletedAt: endedAt === null ? null : iso(endedAt + captureRetentionDays * DAY_MS),
    maxMiB: maxBytes / MIB,
    bytes: capture.bytes,
    requests: capture.requests,
    droppedBytes: capture.droppedBytes,
  }
}
