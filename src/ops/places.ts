/** Where the parts of a data folder lie. */
import { join } from 'node:path'
import type { Config } from '../env.ts'

export interface Places {
  dir: string
  databasePath: string
  keyPath: string
}

/** Nothing is opened or made. */
export const placesOf = ({
  DATA_DIR: dir,
  ENCRYPTION_KEY_FILE,
}: Pick<Config, 'DATA_DIR' | 'ENCRYPTION_KEY_FILE'>): Places => ({
  dir,
  databasePath: join(dir, 'sluice.db'),
  keyPath: ENCRYPTION_KEY_FILE ?? join(dir, 'encryption.key'),
})
