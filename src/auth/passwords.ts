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
const COST: Cost = { memoryCost: 19_456, timeCost: 2 }
const MAX_CHARS = 1024

interface Cost {
  memoryCost: number
  timeCost: number
}

/** A fake hash that costs the same to check. A real one, made at each start, took 50 ms and 19 MiB (Bun 1.4.5). */
const getDummyHash = ({ memoryCost, timeCost }: Cost): string =>
  `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`

export const DUMMY_HASH = getDummyHash(COST)

interface Hasher {
  hash(password: string): Promise<string>
  verify(hash: string, password: string): Promise<boolean>
}

/** One implementation per process, so that all checks take the same time. Only tests pass a lower cost. */
export const createPasswords = async (cost = COST): Promise<Passwords> => {
  const hasher = await loadHasher(cost)
  const dummyHash = getDummyHash(cost)
  const queue = getQueue(AT_ONCE)
  return {
    hash: (password) => queue(() => hasher.hash(password)),
    verify: (password, hash) =>
      queue(async () => {
        const tried = password.slice(0, MAX_CHARS) || ' '
        if (hash !== null) return (await hasher.verify(hash, tried).catch(() => false)) && password !== ''
        await hasher.verify(dummyHash, tried)
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
const loadHasher = async (cost: Cost): Promise<Hasher> =>
  typeof SLUICE_EXECUTABLE === 'undefined' ? nativeHasher(cost).catch(() => runtimeHasher(cost)) : runtimeHasher(cost)

const nativeHasher = async (cost: Cost): Promise<Hasher> => {
  const argon2 = await import('@node-rs/argon2')
  const options = { ...cost, parallelism: 1 }
  return {
    hash: (password) => argon2.hash(password, options),
    verify: (hash, password) => argon2.verify(hash, password),
  }
}

const runtimeHasher = (cost: Cost): Hasher => ({
  hash: (password) => Bun.password.hash(password, { algorithm: 'argon2id', ...cost }),
  verify: (hash, password) => Bun.password.verify(password, hash),
})
