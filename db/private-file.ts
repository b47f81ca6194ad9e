/** Makes files readable by their owner only. */
import { chmodSync, existsSync } from 'node:fs'

/** By path, because opening a database file and closing it again drops this process's locks on it (fcntl). Missing files are skipped. */
export function makePrivate(path: string): void {
  if (existsSync(path)) chmodSync(path, 0o600)
}
