/** The two ceremonies of passkeys: what an authenticator is asked to sign, and whether what came back proves anything. */
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server'
import { z } from 'zod'
import { parseJson } from '../lib/json.ts'
import { encodeUtf8 } from '../lib/utf8.ts'
import { CHALLENGE_MS, type PasskeyRow } from '../model/passkeys.ts'

/** Whom passkeys are made for: a host name, and the origin the browser must be at. */
export interface RelyingParty {
  id: string
  origin: string
}

const NAME = 'Sluice'
/** COSE numbers of what every authenticator knows one of: Ed25519, ES256, RS256. */
const ALGORITHMS = [-8, -7, -257]

/**
 * Takes 150 ms to load from source (measured), so not before somebody has a passkey. What it needs first it imports itself,
 * but the bundler loses that import of a lazily loaded package (measured, Bun 1.4.5), and the executable would fail here.
 */
const library = async () => {
  await import('reflect-metadata')
  return import('@simplewebauthn/server')
}

const text = z.string().max(100_000)

/** What a form carries as text. */
const orText = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (typeof value === 'string' ? parseJson(value) : value), schema)

const credential = { id: text, rawId: text, type: z.literal('public-key') }

/** `PublicKeyCredential.toJSON()` of a new passkey; browsers add members, which are left aside. */
export const RegistrationResponse = orText(
  z.object({
    ...credential,
    response: z.object({
      clientDataJSON: text,
      attestationObject: text,
      transports: z.array(z.string().max(32)).max(16).default([]),
    }),
  }),
)
export type RegistrationResponse = z.output<typeof RegistrationResponse>

/** `PublicKeyCredential.toJSON()` of a passkey that was used. */
export const AssertionResponse = orText(
  z.object({
    ...credential,
    response: z.object({
      clientDataJSON: text,
      authenticatorData: text,
      signature: text,
      userHandle: text.nullish(),
    }),
  }),
)
export type AssertionResponse = z.output<typeof AssertionResponse>

interface Registrant {
  id: string
  username: string
  displayName: string | null
}

/** For `navigator.credentials.create`. `held` are not made a second time on the same authenticator. */
export const registrationOptions = async (
  rp: RelyingParty,
  { user, challenge, held }: { user: Registrant; challenge: string; held: readonly PasskeyRow[] },
): Promise<PublicKeyCredentialCreationOptionsJSON> => {
  const { generateRegistrationOptions } = await library()
  return generateRegistrationOptions({
    rpName: NAME,
    rpID: rp.id,
    userID: encodeUtf8(user.id),
    userName: user.username,
    userDisplayName: user.displayName ?? user.username,
    challenge: bytesOf(challenge),
    timeout: CHALLENGE_MS,
    attestationType: 'none',
    excludeCredentials: held.map(described),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: ALGORITHMS,
  })
}

/** For `navigator.credentials.get`. Nothing `allowed`: the person picks one, and it says who they are. */
export const assertionOptions = async (
  rp: RelyingParty,
  { challenge, allowed }: { challenge: string; allowed: readonly PasskeyRow[] },
): Promise<PublicKeyCredentialRequestOptionsJSON> => {
  const { generateAuthenticationOptions } = await library()
  return generateAuthenticationOptions({
    rpID: rp.id,
    challenge: bytesOf(challenge),
    timeout: CHALLENGE_MS,
    allowCredentials: allowed.map(described),
    userVerification: 'required',
  })
}

/** Which challenge was signed; null when that cannot be read. Whether it was ours is for `takeChallenge` to say. */
export const challengeOf = ({ response }: { response: { clientDataJSON: string } }): string | null =>
  ClientData.safeParse(parseJson(Buffer.from(response.clientDataJSON, 'base64url').toString())).data?.challenge ?? null

const ClientData = z.object({ challenge: z.string().max(1000) })

/** `why` is for the log. */
export type Proof<T> = { isProven: true; value: T } | { isProven: false; why: unknown }

type NewCredential = Pick<PasskeyRow, 'credentialId' | 'publicKey' | 'counter' | 'transports'>

/** Whether a passkey was made for this origin by somebody the authenticator has verified. */
export const proveRegistration = (
  rp: RelyingParty,
  answer: RegistrationResponse,
  challenge: string,
): Promise<Proof<NewCredential>> =>
  proven(async () => {
    const { verifyRegistrationResponse } = await library()
    const { registrationInfo } = await verifyRegistrationResponse({
      response: { ...answer, clientExtensionResults: {} } as RegistrationResponseJSON, // as: names of transports to come
      expectedChallenge: challenge,
      expectedOrigin: rp.origin,
      expectedRPID: rp.id,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    })
    if (!registrationInfo) throw new Error('The attestation is not valid.')
    const { id, publicKey, counter } = registrationInfo.credential
    return {
      credentialId: id,
      publicKey: Buffer.from(publicKey).toString('base64url'),
      counter,
      transports: answer.response.transports,
    }
  })

/** Whether `passkey` has signed the challenge for this origin, its person verified. The value is its new counter. */
export const proveAssertion = (
  rp: RelyingParty,
  answer: AssertionResponse,
  { passkey, challenge }: { passkey: PasskeyRow; challenge: string },
): Promise<Proof<number>> =>
  proven(async () => {
    const { verifyAuthenticationResponse } = await library()
    const { userHandle } = answer.response
    if (userHandle && Buffer.from(userHandle, 'base64url').toString() !== passkey.userId)
      throw new Error('The passkey belongs to another user.')
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: { ...answer, clientExtensionResults: {} } as AuthenticationResponseJSON, // as: a null handle is none
      expectedChallenge: challenge,
      expectedOrigin: rp.origin,
      expectedRPID: rp.id,
      credential: { id: passkey.credentialId, publicKey: bytesOf(passkey.publicKey), counter: passkey.counter },
      requireUserVerification: true,
    })
    if (!verified) throw new Error('The signature is not valid.')
    return authenticationInfo.newCounter
  })

/** The library throws for everything that is not as it should be. */
const proven = async <T>(prove: () => Promise<T>): Promise<Proof<T>> => {
  try {
    return { isProven: true, value: await prove() }
  } catch (why) {
    return { isProven: false, why }
  }
}

const described = ({ credentialId, transports }: PasskeyRow) => ({ id: credentialId, transports })

const bytesOf = (base64url: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(base64url, 'base64url'))
