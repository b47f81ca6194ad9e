/** Creates the data folder, readable only by its owner. */
import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs'

/** The folder or its encryption key is unusable; the message is for stderr. */
export class FolderError extends Error {
  override readonly name = 'FolderError'
}

export const makePrivateFolder = (dir: string): void => {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new FolderError(
      `The data folder ${dir} cannot be created (${getCode(cause)}). Set SLUICE_DATA_DIR to another folder.`,
      { cause },
    )
  }
  requireOwn(dir)
  try {
    chmodSync(dir, 0o700)
  } catch {
    // A volume of another owner, as in a container run with --user. Its files are 0600 anyway.
  }
}

const STICKY = 0o1000

/**
 * Restricting a shared folder such as `/tmp` would lock out its users. A folder already used by Sluice no longer has
 * the sticky bit.
 */
const requireOwn = (dir: string): void => {
  const { mode, uid } = statSync(dir)
  if ((mode & STICKY) === 0 || uid !== process.getuid?.() || readdirSync(dir).length === 0) return
  throw new FolderError(
    `The data folder ${dir} is shared by all users of this machine. Set SLUICE_DATA_DIR to a folder in it.`,
  )
}

const getCode = (err: unknown): string => (err instanceof Error && 'code' in err ? String(err.code) : String(err))
