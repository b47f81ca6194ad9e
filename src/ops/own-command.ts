/** Starts this program again in a child process, for work that must not block the event loop. */
import { dirname, resolve } from 'node:path'

/** Whether this is the compiled executable; otherwise a checkout run by the runtime. */
const isCompiled = (): boolean => Bun.main.startsWith('/$bunfs/')

/** The executable starts itself; a checkout is started with the runtime. */
export const ownCommand = (): string[] => (isCompiled() ? [process.execPath] : [process.execPath, Bun.main])

/** Starts another process like this one, with the flags of the runtime. */
export const workerCommand = (): string[] =>
  isCompiled() ? [process.execPath] : [process.execPath, ...process.execArgv, Bun.main]

/** The command users type: the executable by name, a checkout through npm, because Bun may not be on PATH. */
export const getUserCommand = (): string => (isCompiled() ? 'sluice' : 'npm run sluice --')

/** The folder a checkout must run in: the runtime reads tsconfig.json only there. Null for the executable. */
export const ownFolder = (): string | null => (isCompiled() ? null : resolve(dirname(Bun.main), '..'))

/**
 * Runs a command to its end in a child process with `environment`. Resolves with its stderr when it failed, otherwise
 * null. Aborting `signal` kills it and rejects with the reason.
 */
export const runOwnCommand = async (
  args: readonly string[],
  { environment, signal }: { environment: Readonly<Record<string, string | undefined>>; signal?: AbortSignal },
): Promise<string | null> => {
  signal?.throwIfAborted()
  const child = Bun.spawn([...ownCommand(), ...args], {
    env: environment,
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(signal && { signal }),
  })
  const [said, exitCode] = await Promise.all([new Response(child.stderr).text(), child.exited])
  signal?.throwIfAborted()
  return exitCode === 0 ? null : said.trim() || `it ended with code ${exitCode}`
}
