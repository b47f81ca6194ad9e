/** People whom a reverse proxy announces by a header: found, taken in, or refused (spec §5, trusted-header mode). */
import { commit, type Db } from '../../db/commit.ts'
import type { Ctx } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { subjectText } from '../lib/subject.ts'
import { headerText } from '../lib/utf8.ts'
import { admitIdentity, isSightingDue, MAX_SUBJECT, matchFor, noteSighting } from '../model/admit-identity.ts'
import { append } from '../model/audit.ts'
import { findByIdentity, type Person } from '../model/people.ts'
import { budgetClient } from './failure-budget.ts'
import { note } from './note.ts'

/** Whether a reverse proxy says who people are: else a name at it lets nobody in. */
export const isProxyTrusted = ({ env: { env } }: Ctx): boolean => env.DASHBOARD_AUTH_MODE === 'trusted_header'

/**
 * The name the proxy gives, in lower case and without the blanks a header may have around its value; null without one, and from
 * anybody who is not a trusted proxy.
 */
export const proxySubject = (c: Ctx): string | null => {
  const value = (c.var.viaProxy && c.req.header(c.env.env.DASHBOARD_AUTH_PROXY_HEADER)) || ''
  return subjectOf(c.env.db, value.replace(/^[ \t]+|[ \t]+$/g, '')) || null
}

/** Who was taken in when names were read as Latin-1 keeps the account, and is kept out by it where it is disabled. */
const subjectOf = (db: Db, value: string): string => {
  const subject = subjectText(headerText(value))
  const garbled = subjectText(value)
  return subject === garbled || findByIdentity(db, subject) || !findByIdentity(db, garbled) ? subject : garbled
}

/** The account behind the name, made on first sight where the provider takes strangers in; else why not. */
export const identify = (c: Ctx, subject: string): Person | AppError => {
  const { db, clock } = c.env
  const person = isJoined(subject) ? null : (findByIdentity(db, subject) ?? admit(c, subject))
  if (!person || person.row.status === 'invited')
    return new AppError('identity_not_provisioned', { details: { subject } })
  if (person.row.status === 'disabled') return new AppError('account_disabled', { details: { subject } })
  const now = clock.now()
  if (isSightingDue(db, subject, now)) note(c, (tx) => noteSighting(tx, subject, now))
  return person
}

/**
 * Writes down that somebody the proxy announced was turned away, at most eight times a minute and client: their browser goes
 * on asking, and the log is for finding out whom to add.
 */
export const recordRefusal = (c: Ctx, subject: string, { code }: AppError): void => {
  const { db, clock, refusals } = c.env
  if (!refusals.spend(budgetClient(c))) return
  const target = findByIdentity(db, subject)?.row.id ?? null
  const reason = code === 'account_disabled' ? code : 'unknown_identity'
  const actor = { id: 'anonymous', method: 'trusted_header', address: c.var.clientIp, at: clock.now() }
  const details = { method: 'trusted_header', reason, subject: subject.slice(0, MAX_SUBJECT) }
  note(c, (tx) => append(tx, actor, 'login_failed', { target, details }))
}

/** Two headers arrive as one with a comma, and which of them the proxy wrote cannot be told: that is nobody. */
const isJoined = (subject: string): boolean => subject.includes(',')

const admit = (c: Ctx, subject: string): Person | null => {
  const { db, random, clock } = c.env
  const match = matchFor(db, subject, clock.now())
  if (match === null) return null
  const arrival = { match, random, address: c.var.clientIp, now: clock.now() }
  return commit(db, (tx) => admitIdentity(tx, subject, arrival))
}
