/** Password hashes: argon2id at 19 MiB and two passes (decisions §4), a few at a time, at one cost whoever is asked about. */
import { queueOf } from '../lib/lanes.ts'

export interface Passwords {
  /** A PHC string. */
  hash(password: string): Promise<string>
  /** False also for `null`, after the same work: who has no password cannot be told from who gave a wrong one. */
  verify(password: string, hash: string | null): Promise<boolean>
}

/** Each takes 19 MiB and a thread. */
const AT_ONCE = 4
const COST = { memoryCost: 19_456, timeCost: 2 } as const
const MAX_CHARS = 1024

/** Of no password: to look at it is all the work there is. A real one, made at each start, took 50 ms and 19 MiB (measured). */
export const NOBODYS_HASH = `$argon2id$v=19$m=${COST.memoryCost},t=${COST.timeCost},p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`

interface Hasher {
  hash(password: string): Promise<string>
  verify(hash: string, password: string): Promise<boolean>
}

/** One implementation for the life of the process, so that no two checks differ in time. */
export const createPasswords = async (): Promise<Passwords> => {
  const hasher = await loadHasher()
  const queue = queueOf(AT_ONCE)
  return {
    hash: (password) => queue(() => hasher.hash(password)),
    verify: (password, hash) =>
      queue(async () => {
        const tried = password.slice(0, MAX_CHARS) || ' '
        if (hash !== null) return (await hasher.verify(hash, tried).catch(() => false)) && password !== ''
        await hasher.verify(NOBODYS_HASH, tried)
        return false
      }),
  }
}

/** Set by `scripts/build.ts`, so that the executable is built without the addon; nowhere else is there such a name. */
declare const SLUICE_EXECUTABLE: true | undefined

/**
 * The native addon is three times as fast, from a folder of packages. In the executable it would have to be written to the
 * temporary folder before each start, where it stays behind (measured, Bun 1.4.5) and where a program may be forbidden; there,
 * and where the addon cannot be loaded, the runtime's own argon2id is used. Both read what the other has written.
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
