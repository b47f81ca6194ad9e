/** Users announced by a reverse proxy in a header: found, created or rejected (spec §5, trusted-header mode). */
import { commit, type Db } from '../../db/commit.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { normalizeSubject } from '../lib/subject.ts'
import { headerText } from '../lib/utf8.ts'
import { append } from '../model/audit/audit.ts'
import { admitIdentity, isSightingDue, MAX_SUBJECT, matchFor, recordSighting } from '../model/users/admit-identity.ts'
import { findByIdentity, type Person } from '../model/users/people.ts'
import { budgetClient } from './failure-budget.ts'
import { tryCommit } from './try-commit.ts'

/** Whether a reverse proxy identifies users. Otherwise its header is ignored. */
export const isProxyTrusted = ({ env: { env } }: Ctx): boolean => env.DASHBOARD_AUTH_MODE === 'trusted_header'

/** The user name from the trusted proxy, in lower case and without surrounding blanks; null without one. */
export const proxySubject = async (c: Ctx): Promise<string | null> => {
  const value = (c.var.viaProxy && c.req.header(c.env.env.DASHBOARD_AUTH_PROXY_HEADER)) || ''
  return (await getSubject(c.env.db, value.replace(/^[ \t]+|[ \t]+$/g, ''))) || null
}

/** Users created when header names were read as Latin-1 keep their user, and stay locked out if it is disabled. */
const getSubject = async (db: Db, value: string): Promise<string> => {
  const subject = normalizeSubject(headerText(value))
  const garbled = normalizeSubject(value)
  return subject === garbled || (await findByIdentity(db, subject)) || !(await findByIdentity(db, garbled))
    ? subject
    : garbled
}

/** The user of this name, created on first sight if the provider admits new users; otherwise the error. */
export const identify = async (c: Ctx, subject: string): Promise<Person | AppError> => {
  const { db, clock } = c.env
  const person = isJoined(subject) ? null : ((await findByIdentity(db, subject)) ?? (await admit(c, subject)))
  if (!person || person.row.status === 'invited')
    return new AppError('identity_not_provisioned', { details: { subject } })
  if (person.row.status === 'disabled') return new AppError('account_disabled', { details: { subject } })
  const now = clock.now()
  if (await isSightingDue(db, subject, now)) await tryCommit(c, (tx) => recordSighting(tx, subject, now))
  return person
}

/**
 * Records that a user announced by the proxy was rejected, at most eight times per minute and client: their browser
 * keeps trying, and the log should only show whom to add.
 */
export const recordRefusal = async (c: Ctx, subject: string, { code }: AppError): Promise<void> => {
  const { db, clock, refusals } = c.env
  if (!refusals.spend(budgetClient(c))) return
  const target = (await findByIdentity(db, subject))?.row.id ?? null
  const reason = code === 'account_disabled' ? code : 'unknown_identity'
  const actor = { id: 'anonymous', method: 'trusted_header', address: c.var.clientIp, at: clock.now() }
  const details = { method: 'trusted_header', reason, subject: subject.slice(0, MAX_SUBJECT) }
  await tryCommit(c, (tx) => append(tx, actor, 'login_failed', { target, details }))
}

/** Two headers arrive joined by a comma, and it is unclear which one the proxy wrote, so neither counts. */
const isJoined = (subject: string): boolean => subject.includes(',')

const admit = async (c: Ctx, subject: string): Promise<Person | null> => {
  const { db, random, clock } = c.env
  if ((await matchFor(db, subject, clock.now())) === null) return null
  return commit(db, async (tx) => {
    const known = await findByIdentity(tx, subject) // several requests of one page arrive together
    if (known) return known
    const match = await matchFor(tx, subject, clock.now())
    return match && admitIdentity(tx, subject, { match, random, address: c.var.clientIp, now: clock.now() })
  })
}
