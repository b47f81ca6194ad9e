/** Who opens the page of a key: a client that entered it, by a cookie of its own. */
import { commit, type Tx } from '../../db/commit.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { type Actor, append } from '../model/audit/audit.ts'
import { hashKey } from '../model/keys/api-keys.ts'
import type { KeyPolicy } from '../model/keys/key-ring.ts'
import { createKeySession, endKeySession, findKeySession } from '../model/keys/key-sessions.ts'
import { attempt } from './secret-attempt.ts'
import { tokenCookie } from './session-cookie.ts'

const cookie = tokenCookie('sluice_key', { outlivesMs: 0 })

export interface KeyHolder {
  policy: KeyPolicy
  /** SHA-256 of the key that was entered. */
  keyHash: string
}

/**
 * Requires that the page is on and that the firewall admits the client, which could not use a key otherwise. Throws
 * `not_found` and `ip_forbidden`.
 */
export const requireKeyPage = async (c: Ctx): Promise<void> => {
  if (!c.env.settings.current().keyHolderPage) throw new AppError('not_found')
  if (!c.env.firewall.allows(c.get('clientIp'))) throw new AppError('ip_forbidden')
}

/** Null: no key was entered, or the session ended with its time or with the key. */
export const keyHolder = async (c: Ctx): Promise<KeyHolder | null> => {
  const token = cookie.read(c)
  const session = token === null ? null : await findKeySession(c.env.db, token, c.env.clock.now())
  const policy = session && usable(c, session.keyHash)
  return session && policy ? { policy, keyHash: session.keyHash } : null
}

/** Throws `key_session_ended`. */
export const requireKeyHolder = async (c: Ctx): Promise<KeyHolder> => {
  const holder = await keyHolder(c)
  if (!holder) throw new AppError('key_session_ended')
  return holder
}

/**
 * Opens a session for the secret, found by its hash like those of clients. Unknown, disabled and expired keys get
 * the same answer in the same time. Throws `invalid_key` and `key_rate_limited`.
 */
export const enterKey = async (c: Ctx, secret: string): Promise<KeyHolder> => {
  const holder = await attempt(c, { limited: 'key_rate_limited', method: 'api_key', target: null }, () => {
    const keyHash = hashKey(secret)
    const policy = usable(c, keyHash)
    if (!policy) throw new AppError('invalid_key')
    return { policy, keyHash }
  })
  await commit(c.env.db, async (tx) => {
    await dropCookiesSession(c, tx)
    await openSession(c, tx, holder.keyHash)
    await append(tx, holderActor(c, holder.policy), 'key_page_opened', { target: holder.policy.id })
  })
  return holder
}

/** Ends the session of this browser. */
export const leaveKey = async (c: Ctx): Promise<void> => {
  const holder = await keyHolder(c)
  await commit(c.env.db, async (tx) => {
    await dropCookiesSession(c, tx)
    if (holder) await append(tx, holderActor(c, holder.policy), 'key_page_closed', { target: holder.policy.id })
  })
  cookie.clear(c)
}

/** The holder of a key in the audit log. */
export const holderActor = (c: Ctx, { id, name }: KeyPolicy): Actor => ({
  id,
  name,
  method: 'api_key',
  address: c.var.clientIp,
  at: c.env.clock.now(),
})

/** Opens a session of this browser in the caller's commit, also for the new secret of its key. */
export const openSession = async (c: Ctx, tx: Tx, keyHash: string): Promise<void> => {
  const { token, expiresAt } = await createKeySession(tx, c.env.random, { keyHash, now: c.env.clock.now() })
  cookie.write(c, token, expiresAt)
}

const dropCookiesSession = async (c: Ctx, tx: Tx): Promise<void> => {
  const token = cookie.read(c)
  if (token !== null) await endKeySession(tx, token)
}

const usable = ({ env: { keys, clock } }: Ctx, keyHash: string): KeyPolicy | null => {
  const policy = keys.byHash(keyHash)
  const isOver = policy !== null && policy.expiresAt !== null && policy.expiresAt <= clock.now()
  return policy?.isActive && !isOver ? policy : null
}
