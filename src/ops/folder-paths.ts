/** Paths in a data folder. */
import { join } from 'node:path'
import type { Config } from '../boot/env.ts'

export interface FolderPaths {
  dir: string
  databasePath: string
  keyPath: string
}

/** Opens and creates nothing. */
export const getFolderPaths = ({
  DATA_DIR: dir,
  ENCRYPTION_KEY_FILE,
}: Pick<Config, 'DATA_DIR' | 'ENCRYPTION_KEY_FILE'>): FolderPaths => ({
  dir,
  databasePath: join(dir, 'sluice.db'),
  keyPath: ENCRYPTION_KEY_FILE ?? join(dir, 'encryption.key'),
})
