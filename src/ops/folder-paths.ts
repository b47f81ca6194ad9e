/** Paths in a data folder. */
import { join } from 'node:path'
import type { Config } from '../boot/env.ts'

export interface FolderPaths {
  dir: string
  databasePath: string
  keyPath: string
  /** The URL of PostgreSQL, which is used instead of the file at `databasePath`. Null for SQLite. */
  databaseUrl: string | null
}

type Places = Pick<Config, 'DATA_DIR' | 'ENCRYPTION_KEY_FILE'> & { readonly DATABASE_URL?: string | null | undefined }

/** Opens and creates nothing. */
export const getFolderPaths = ({ DATA_DIR: dir, ENCRYPTION_KEY_FILE, DATABASE_URL }: Places): FolderPaths => ({
  dir,
  databasePath: join(dir, 'sluice.db'),
  keyPath: ENCRYPTION_KEY_FILE ?? join(dir, 'encryption.key'),
  databaseUrl: DATABASE_URL ?? null,
})
