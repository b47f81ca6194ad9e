/**
 * Password hashes: argon2id at 19 MiB and two passes (decisions §4), a few in parallel, and the same cost for unknown
 * users.
 */
import { getQueue } from '../lib/lanes.ts'

export interface Passwords {
  /** A PHC string. */
  hash(password: string): Promise<string>
  /** Also false for `null`, after the same work, so that timing does not reveal whether a user has a password. */
  verify(password: string, hash: string | null): Promise<boolean>
}

/** Each needs 19 MiB and a thread. */
const AT_ONCE = 4
const COST = { memoryCost: 19_456, timeCost: 2 } as const
const MAX_CHARS = 1024

/** A fake hash that costs the same to check. A real one, made at each start, took 50 ms and 19 MiB (Bun 1.4.5). */
export const DUMMY_HASH = `$argon2id$v=19$m=${COST.memoryCost},t=${COST.timeCost},p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`

interface Hasher {
  hash(password: string): Promise<string>
  verify(hash: string, password: string): Promise<boolean>
}

/** One implementation per process, so that all checks take the same time. */
export const createPasswords = async (): Promise<Passwords> => {
  const hasher = await loadHasher()
  const queue = getQueue(AT_ONCE)
  return {
    hash: (password) => queue(() => hasher.hash(password)),
    verify: (password, hash) =>
      queue(async () => {
        const tried = password.slice(0, MAX_CHARS) || ' '
        if (hash !== null) return (await hasher.verify(hash, tried).catch(() => false)) && password !== ''
        await hasher.verify(DUMMY_HASH, tried)
        return false
      }),
  }
}

/** Defined by `scripts/build.ts` only, so that the executable is built without the addon. */
declare const SLUICE_EXECUTABLE: true | undefined

/**
 * From a folder of packages the native addon is three times as fast. The executable would have to extract it to the
 * temporary folder at each start, where it is left behind (Bun 1.4.5) and may not be executable. There, and where the
 * addon fails to load, the runtime's argon2id is used. The hashes are interchangeable.
 */
const loadHasher = async (): Promise<Hasher> =>
  typeof SLUICE_EXECUTABLE === 'undefined' ? nativeHasher().catch(() => RUNTIME) : RUNTIME

const nativeHasher = async (): Promise<Hasher> => {
  const argon2 = await import('@node-rs/argon2')
  const options = { ...COST, parallelism: 1 }
  return {
    hash: (password) => argon2.hash(password, options),
    verify: (hash, password) => argon2.verify(hash, password),
  }
}

const RUNTIME: Hasher = {
  hash: (password) => Bun.password.hash(password, { algorithm: 'argon2id', ...COST }),
  verify: (hash, password) => Bun.password.verify(password, hash),
}
