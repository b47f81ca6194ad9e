/** The two passkey ceremonies: creates the options for an authenticator and verifies its response. */
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server'
import { z } from 'zod'
import { parseJson } from '../lib/json.ts'
import { encodeUtf8 } from '../lib/utf8.ts'
import { CHALLENGE_MS, type PasskeyRow } from '../model/users/passkeys.ts'

/** The host name passkeys belong to, and the origin the browser must be at. */
export interface RelyingParty {
  id: string
  origin: string
}

const NAME = 'Sluice'
/** COSE algorithms, of which every authenticator supports one: Ed25519, ES256, RS256. */
const ALGORITHMS = [-8, -7, -257]

/**
 * Takes 150 ms to load from source (Bun 1.4.5), so it is loaded on first use. The explicit import is needed because the
 * bundler drops it from lazily loaded packages (Bun 1.4.5), and the executable would fail.
 */
const library = async () => {
  await import('reflect-metadata')
  return import('@simplewebauthn/server')
}

const text = z.string().max(100_000)

/** Forms send it as JSON text. */
const orText = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (typeof value === 'string' ? parseJson(value) : value), schema)

const credential = { id: text, rawId: text, type: z.literal('public-key') }

/** `PublicKeyCredential.toJSON()` of a new passkey; extra members from browsers are ignored. */
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

/** For `navigator.credentials.create`. Passkeys in `held` are not created twice on one authenticator. */
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
    challenge: getBytes(challenge),
    timeout: CHALLENGE_MS,
    attestationType: 'none',
    excludeCredentials: held.map(described),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: ALGORITHMS,
  })
}

/** For `navigator.credentials.get`. With nothing `allowed`, the chosen passkey identifies the user. */
export const assertionOptions = async (
  rp: RelyingParty,
  { challenge, allowed }: { challenge: string; allowed: readonly PasskeyRow[] },
): Promise<PublicKeyCredentialRequestOptionsJSON> => {
  const { generateAuthenticationOptions } = await library()
  return generateAuthenticationOptions({
    rpID: rp.id,
    challenge: getBytes(challenge),
    timeout: CHALLENGE_MS,
    allowCredentials: allowed.map(described),
    userVerification: 'required',
  })
}

/** The signed challenge; null when unreadable. `takeChallenge` checks whether it was ours. */
export const getChallenge = ({ response }: { response: { clientDataJSON: string } }): string | null =>
  ClientData.safeParse(parseJson(Buffer.from(response.clientDataJSON, 'base64url').toString())).data?.challenge ?? null

const ClientData = z.object({ challenge: z.string().max(1000) })

/** `why` is for the log. */
export type Proof<T> = { isProven: true; value: T } | { isProven: false; why: unknown }

type NewCredential = Pick<PasskeyRow, 'credentialId' | 'publicKey' | 'counter' | 'transports'>

/** Verifies that a passkey was created for this origin with user verification. */
export const proveRegistration = (
  rp: RelyingParty,
  answer: RegistrationResponse,
  challenge: string,
): Promise<Proof<NewCredential>> =>
  proven(async () => {
    const { verifyRegistrationResponse } = await library()
    const { registrationInfo } = await verifyRegistrationResponse({
      // as: may contain future transport names
      response: { ...answer, clientExtensionResults: {} } as RegistrationResponseJSON,
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

/** Verifies that `passkey` signed the challenge for this origin with user verification. The value is its new counter. */
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
      // as: the library takes a null handle for none
      response: { ...answer, clientExtensionResults: {} } as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: rp.origin,
      expectedRPID: rp.id,
      credential: { id: passkey.credentialId, publicKey: getBytes(passkey.publicKey), counter: passkey.counter },
      requireUserVerification: true,
    })
    if (!verified) throw new Error('The signature is not valid.')
    return authenticationInfo.newCounter
  })

/** The library throws for every failed check. */
const proven = async <T>(prove: () => Promise<T>): Promise<Proof<T>> => {
  try {
    return { isProven: true, value: await prove() }
  } catch (why) {
    return { isProven: false, why }
  }
}

const described = ({ credentialId, transports }: PasskeyRow) => ({ id: credentialId, transports })

const getBytes = (base64url: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(base64url, 'base64url'))
