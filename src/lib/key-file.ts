/** The encryption key on disk: created once, readable only by its owner. */
import { chmodSync, closeSync, fsyncSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import type { Random } from './random.ts'

/**
 * The 32 bytes in `path`, created when missing and never overwritten. Wider permissions are tightened to 0600. Throws
 * an Error with a message for the operator when that fails, or the content is not a key.
 */
export function loadOrCreateKey(path: string, random: Random): Uint8Array {
  return create(path, random) ?? load(path)
}

/** The 32 bytes in `path`, without creating it. Throws what `loadOrCreateKey` does, and system errors. */
export function readKey(path: string): Uint8Array {
  return load(path)
}

const KEY_BYTES = 32
const OTHERS = 0o077

/** Null when the file exists. `wx` is O_EXCL: the loser of a race reads the winner's key. */
function create(path: string, random: Random): Uint8Array | null {
  const file = openNew(path)
  if (file === null) return null
  try {
    const key = random.bytes(KEY_BYTES)
    writeSync(file, `${Buffer.from(key).toString('base64url')}\n`)
    fsyncSync(file)
    return key
  } catch (cause) {
    rmSync(path) // half a key would be rejected at every start
    // as: node:fs throws nothing else
    throw new Error(`The encryption key file ${path} could not be written: ${(cause as Error).message}`, { cause })
  } finally {
    closeSync(file)
  }
}

function openNew(path: string): number | null {
  try {
    return openSync(path, 'wx', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return null // as: node:fs throws nothing else
    throw new Error(`The encryption key file ${path} could not be created.`, { cause: error })
  }
}

function load(path: string): Uint8Array {
  tighten(path)
  const text = readFileSync(path, 'utf8').trim()
  const key = Buffer.from(text, 'base64url')
  if (!/^[\w-]*$/.test(text) || key.length !== KEY_BYTES) {
    throw new Error(
      `The encryption key file ${path} is not a key of ${KEY_BYTES} bytes in base64url. ` +
        'Restore it from a backup; only if nothing was stored yet, delete it and start again.',
    )
  }
  return new Uint8Array(key)
}

function tighten(path: string): void {
  if (process.platform === 'win32' || (statSync(path).mode & OTHERS) === 0) return
  try {
    chmodSync(path, 0o600)
  } catch (error) {
    throw new Error(`The encryption key file ${path} can be read by other users. Set its mode to 0600.`, {
      cause: error,
    })
  }
}
