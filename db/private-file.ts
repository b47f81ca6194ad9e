/** Makes files readable by their owner only. */
import { chmodSync, existsSync } from 'node:fs'

/** By path, because opening and closing a database file drops this process's locks on it (fcntl). Skips missing files. */
export function makePrivate(path: string): void {
  if (existsSync(path)) chmodSync(path, 0o600)
}
