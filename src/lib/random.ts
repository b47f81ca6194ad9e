/** The only source of randomness: ids, tokens, jitter. Passed as an argument, so that tests can seed it. */

export interface Random {
  /** Uniform in [0, 1) with 53 random bits. */
  float(): number
  /** `n` random bytes. */
  bytes(n: number): Uint8Array<ArrayBuffer>
  /** `prefix_` and 22 letters and digits: 131 bits, safe in URLs, headers and shells, selectable by double click. */
  id(prefix: string): string
  /** Like `id`, but sortable by time: 9 letters for the millisecond, then 13 random ones (77 bits). */
  orderedId(prefix: string, nowMs: number): string
  /** `byteCount` random bytes as base64url without padding. For secrets: 32 bytes give 43 characters. */
  token(byteCount: number): string
}

type Fill = (bytes: Uint8Array<ArrayBuffer>) => void

/** A system call costs as much as forty pooled bytes (Bun 1.4.5), and every turn needs ids. */
const POOL_BYTES = 1024

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const ID_LENGTH = 22
/** Milliseconds in base 36 fit until the year 5188. */
const TIME_LENGTH = 9
/** The largest multiple of 62 in a byte; larger bytes are discarded, or the first letters would be more likely. */
const FAIR_BYTES = 248

/** Cryptographically strong. */
export const systemRandom: Random = fromBytes((bytes) => crypto.getRandomValues(bytes))

/** The same sequence for the same `seed`: for tests and simulations, never for secrets. */
export function seededRandom(seed: number): Random {
  const nextWord = seededWords(seed)
  return fromBytes((bytes) => {
    for (let at = 0; at < bytes.length; at += 4) {
      const word = nextWord()
      for (let i = 0; i < 4 && at + i < bytes.length; i++) bytes[at + i] = word >>> (8 * i)
    }
  })
}

/** Numbers in [0, 1) with 32 random bits, the same for the same `seed`; several times faster than `seededRandom`. */
export function seededFloats(seed: number): () => number {
  const nextWord = seededWords(seed)
  return () => nextWord() / 2 ** 32
}

/** SplitMix32. */
function seededWords(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    let word = state
    word = Math.imul(word ^ (word >>> 16), 0x21f0aaad)
    word = Math.imul(word ^ (word >>> 15), 0x735a2d97)
    return (word ^ (word >>> 15)) >>> 0
  }
}

function fromBytes(fill: Fill): Random {
  const pool = new Uint8Array(POOL_BYTES)
  let used = POOL_BYTES
  const nextByte = (): number => {
    if (used === POOL_BYTES) {
      fill(pool)
      used = 0
    }
    return pool[used++]! // used is below the length
  }
  const nextWord = () => ((nextByte() << 24) | (nextByte() << 16) | (nextByte() << 8) | nextByte()) >>> 0
  /** Written into one buffer and read once: per-letter strings would be forty allocations per turn. */
  const scratch = Buffer.alloc(ID_LENGTH)
  const letters = (start: string, count: number): string => {
    let length = 0
    while (length < count) {
      const byte = nextByte()
      if (byte < FAIR_BYTES) scratch[length++] = ALPHABET.charCodeAt(byte % 62)
    }
    return start + scratch.toString('latin1', 0, count)
  }
  const bytes = (n: number) => {
    const out = new Uint8Array(n)
    fill(out)
    return out
  }
  return {
    bytes,
    float: () => ((nextWord() >>> 5) * 2 ** 26 + (nextWord() >>> 6)) / 2 ** 53,
    id: (prefix) => letters(`${prefix}_`, ID_LENGTH),
    orderedId: (prefix, nowMs) =>
      letters(`${prefix}_${nowMs.toString(36).padStart(TIME_LENGTH, '0')}`, ID_LENGTH - TIME_LENGTH),
    token: (byteCount) => Buffer.from(bytes(byteCount)).toString('base64url'),
  }
}
