/**
 * `/api/dashboard-auth/passkeys`: registers, renames and removes passkeys, and signs in or confirms with one (decisions
 * §4).
 */
import { z } from 'zod'
import { commit, type Db, type Tx } from '../../../db/commit.ts'
import { budgetClient } from '../../auth/failure-budget.ts'
import { isProxyTrusted } from '../../auth/identity.ts'
import { countOwnChange, requireManaged } from '../../auth/own-account.ts'
import { type AccountPrincipal, actor, requireOwnAccount } from '../../auth/principal.ts'
import { attempt } from '../../auth/secret-attempt.ts'
import { sessionView } from '../../auth/session-view.ts'
import { confirm, signIn } from '../../auth/sign-in.ts'
import {
  AssertionResponse,
  assertionOptions,
  getChallenge,
  type Proof,
  proveAssertion,
  proveRegistration,
  RegistrationResponse,
  registrationOptions,
} from '../../auth/webauthn.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { open, signedIn } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { proceed } from '../../http/reply.tsx'
import { iso } from '../../lib/iso.ts'
import {
  addPasskey,
  type ChallengePurpose,
  findCredential,
  listPasskeys,
  openChallenge,
  type PasskeyRow,
  recordPasskeyUse,
  removePasskey,
  renamePasskey,
  takeChallenge,
  toPasskey,
} from '../../model/users/passkeys.ts'
import { getPerson, type Person } from '../../model/users/people.ts'
import { STEP_UP_MS } from '../../model/users/sessions.ts'
import { passkeySupport, requireRelyingParty } from './relying-party.ts'

const Name = z.string().trim().min(1, 'must not be empty').max(64).describe('Display name.')
const Naming = z.strictObject({ name: Name })
const ofBrowser = <S extends z.ZodType>(schema: S): S =>
  schema.describe('`PublicKeyCredential.toJSON()`, as an object or as text.')
const Registration = z.strictObject({ name: Name, response: ofBrowser(RegistrationResponse) })
const Assertion = z.strictObject({ response: ofBrowser(AssertionResponse) })

/** Also whether passkeys work at the dashboard's current address, and if not, why. */
export const listOwnPasskeys = createHandlers(signedIn({ account: true }), async (c) => c.json(await getPasskeys(c)))

export const getPasskeys = async (c: Ctx) => {
  const { rp, reason, link } = passkeySupport(c)
  const items = (await listPasskeys(c.env.db, self(c).id)).map(toPasskey)
  return { items, isAvailable: rp !== null, unavailableReason: reason, availableAt: link }
}

/** Returns options for `navigator.credentials.create`. Throws `own_account_rate_limited`. */
export const startRegistration = createHandlers(signedIn({ account: true, stepUp: true }), async (c) => {
  const rp = requireRelyingParty(c)
  const { row } = self(c).person
  const challenge = await ownChallenge(c, 'register')
  return c.json(await registrationOptions(rp, { user: row, challenge, held: await listPasskeys(c.env.db, row.id) }))
})

export const finishRegistration = createHandlers(
  signedIn({ account: true, stepUp: true, audit: 'passkey_added' }),
  body(Registration),
  async (c) => {
    const rp = requireRelyingParty(c)
    const { name, response } = c.req.valid('json')
    const challenge = requireChallenge(response)
    const made = requireProof(c, await proveRegistration(rp, response, challenge))
    const row = await commit(c.env.db, async (tx) => {
      await spend(c, tx, 'register', challenge)
      await countOwnChange(c, self(c), 'passkey_added')
      return addPasskey(tx, { ...made, name, userId: self(c).id }, { random: c.env.random, actor: actor(c) })
    })
    return c.json(toPasskey(row), 201)
  },
)

export const editPasskey = createHandlers(
  signedIn({ account: true, audit: 'passkey_renamed' }),
  body(Naming),
  async (c) => {
    const { name } = c.req.valid('json')
    const change = { userId: self(c).id, name, actor: actor(c) }
    await countOwnChange(c, self(c), 'passkey_renamed')
    const row = await commit(c.env.db, (tx) => renamePasskey(tx, getPathId(c), change))
    return proceed(c, toPasskey(row), '/me?done=passkey_renamed#passkeys')
  },
)

export const deletePasskey = createHandlers(
  signedIn({ account: true, stepUp: true, audit: 'passkey_removed' }),
  async (c) => {
    const removal = { userId: self(c).id, actor: actor(c), isProxyTrusted: isProxyTrusted(c) }
    await commit(c.env.db, (tx) => removePasskey(tx, getPathId(c), removal))
    return proceed(c, null, '/me?done=passkey_removed#passkeys')
  },
)

/**
 * Returns options for `navigator.credentials.get`. Lists no passkeys: the chosen one identifies the user. Limited per
 * client, so that no client can displace the challenges of others. Throws `password_rate_limited`.
 */
export const startPasskeySignIn = createHandlers(open('sign-in'), async (c) => {
  requireManaged(c)
  const rp = requireRelyingParty(c)
  await c.env.passkeyStarts.take(budgetClient(c), 'password_rate_limited')
  return c.json(await assertionOptions(rp, { challenge: await newChallenge(c, 'sign_in'), allowed: [] }))
})

/** The authenticator verified the user, so all factors were checked. Throws `invalid_passkey` for any failure. */
export const finishPasskeySignIn = createHandlers(
  open('sign-in', { audit: 'login_success' }),
  body(Assertion),
  async (c) => {
    requireManaged(c)
    const rp = requireRelyingParty(c)
    const { response } = c.req.valid('json')
    const passkey = await findCredential(c.env.db, response.id)
    const tried = { limited: 'password_rate_limited', method: 'passkey', target: passkey?.userId ?? null } as const
    const resolution = await attempt(c, tried, async () => {
      const challenge = requireChallenge(response)
      if (!passkey) throw new AppError('invalid_passkey')
      const counter = requireProof(c, await proveAssertion(rp, response, { passkey, challenge }))
      const person = await requireActive(c.env.db, passkey.userId)
      const first = async (tx: Tx) => {
        await requireActive(tx, passkey.userId)
        await use(c, tx, 'sign_in', { passkey, challenge, counter })
      }
      return signIn(c, { person, method: 'passkey', isComplete: true, first })
    })
    return c.json(await sessionView(c, resolution))
  },
)

/** Throws `step_up_unavailable` without a passkey, and `own_account_rate_limited`. */
export const startPasskeyStepUp = createHandlers(signedIn({ account: true }), async (c) => {
  const rp = requireRelyingParty(c)
  const allowed = await listPasskeys(c.env.db, self(c).id)
  if (allowed.length === 0) throw new AppError('step_up_unavailable')
  return c.json(await assertionOptions(rp, { challenge: await ownChallenge(c, 'step_up'), allowed }))
})

export const finishPasskeyStepUp = createHandlers(
  signedIn({ account: true, audit: 'step_up_verified' }),
  body(Assertion),
  async (c) => {
    const rp = requireRelyingParty(c)
    const principal = self(c)
    const { response } = c.req.valid('json')
    const tried = { limited: 'step_up_rate_limited', method: 'step_up', target: principal.id } as const
    const until = await attempt(c, tried, async () => {
      const challenge = requireChallenge(response)
      const passkey = await findCredential(c.env.db, response.id)
      if (passkey?.userId !== principal.id) throw new AppError('invalid_passkey')
      const counter = requireProof(c, await proveAssertion(rp, response, { passkey, challenge }))
      const first = (tx: Tx) => use(c, tx, 'step_up', { passkey, challenge, counter })
      return confirm(c, principal, { methods: ['passkey'], first })
    })
    return c.json({ verifiedAt: iso(until - STEP_UP_MS), expiresAt: iso(until) })
  },
)

/** Guaranteed by the gate. */
const self = (c: Ctx): AccountPrincipal => requireOwnAccount(c.var.principal)

/** A challenge belongs to its session; when signing in there is none. */
const boundTo = (c: Ctx, purpose: ChallengePurpose) => ({
  purpose,
  sessionId: purpose === 'sign_in' ? null : (self(c).session?.id ?? null),
  now: c.env.clock.now(),
})

/**
 * Each challenge stays in the database for minutes. Counted per client too, so that a stolen cookie cannot stop its
 * owner from confirming.
 */
const ownChallenge = async (c: Ctx, purpose: 'register' | 'step_up'): Promise<string> => {
  await c.env.passkeyStarts.take(`${self(c).id} ${purpose} ${budgetClient(c)}`, 'own_account_rate_limited')
  return newChallenge(c, purpose)
}

const newChallenge = async (c: Ctx, purpose: ChallengePurpose): Promise<string> => {
  const bound = boundTo(c, purpose)
  return commit(c.env.db, (tx) => openChallenge(tx, c.env.random, bound))
}

const requireChallenge = (answer: { response: { clientDataJSON: string } }): string => {
  const challenge = getChallenge(answer)
  if (challenge === null) throw new AppError('invalid_passkey')
  return challenge
}

/**
 * Uses up the challenge in the same commit, so that only one of several parallel answers succeeds. Throws
 * `invalid_passkey`.
 */
const spend = async (c: Ctx, tx: Tx, purpose: ChallengePurpose, challenge: string): Promise<void> => {
  if (!(await takeChallenge(tx, challenge, boundTo(c, purpose)))) throw new AppError('invalid_passkey')
}

const requireActive = async (db: Db, userId: string): Promise<Person> => {
  const person = await getPerson(db, userId)
  if (person.row.status !== 'active') throw new AppError('invalid_passkey')
  return person
}

interface Use {
  passkey: PasskeyRow
  challenge: string
  counter: number
}

const use = async (c: Ctx, tx: Tx, purpose: ChallengePurpose, { passkey, challenge, counter }: Use): Promise<void> => {
  await spend(c, tx, purpose, challenge)
  await recordPasskeyUse(tx, passkey.id, { counter, now: c.env.clock.now() })
}

/** The reason is usually a misconfigured origin, and only the log may reveal it. */
const requireProof = <T>(c: Ctx, proof: Proof<T>): T => {
  if (proof.isProven) return proof.value
  c.env.log.info('a passkey was not accepted', { why: proof.why instanceof Error ? proof.why.message : '' })
  throw new AppError('invalid_passkey')
}
