/** The command line in this process, for tests of a command rather than its process. */

import { withEnvFile } from '../../src/boot/env.ts'
import { runCli } from '../../src/cli/main.ts'
import { openFolder } from '../../src/cli/open-folder.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { systemRandom } from '../../src/lib/random.ts'
import { bareEnv, type CommandResult, type SpawnOptions } from './spawn.ts'

/**
 * As `runCommand`, without the quarter of a second of CPU that each new process takes. A command that reads its standard
 * input, and output that is cleaned for a terminal, need a real process.
 */
export const runInProcess = async (
  args: readonly string[],
  { dataDir, env }: Pick<SpawnOptions, 'dataDir' | 'env'> = {},
): Promise<CommandResult> => {
  let stdout = ''
  let stderr = ''
  const exitCode = await runCli(args, {
    environment: withEnvFile(bareEnv({ ...(dataDir && { CODEX_LB_DATA_DIR: dataDir }), ...env })),
    stdout: (text) => {
      stdout += text
    },
    stderr: (text) => {
      stderr += text
    },
    fetch,
    timeout: AbortSignal.timeout,
  })
  return { exitCode, stdout, stderr }
}

/** The database and key of a new folder: commands that only read do not create them. */
export const createDatabase = async (dataDir: string): Promise<void> => {
  const places = { DATA_DIR: dataDir, ENCRYPTION_KEY_FILE: undefined }
  const { close } = await openFolder(places, { clock: systemClock, random: systemRandom })
  await close()
}
