/** How this program starts itself again, for work that must not hold up the event loop. */
import { dirname, resolve } from 'node:path'

/** Whether this is the single file; otherwise a checkout, which the runtime runs. */
const isCompiled = (): boolean => Bun.main.startsWith('/$bunfs/')

/** The compiled binary is its own entry; a checkout is run by the runtime. */
export const ownCommand = (): string[] => (isCompiled() ? [process.execPath] : [process.execPath, Bun.main])

/** The same as people type it: the binary by its name, a checkout through npm, where Bun may not be on PATH. */
export const typedCommand = (): string => (isCompiled() ? 'sluice' : 'npm run sluice --')

/** The folder a checkout must be run in: the runtime reads tsconfig.json there and nowhere else. Null for the binary. */
export const ownFolder = (): string | null => (isCompiled() ? null : resolve(dirname(Bun.main), '..'))

/**
 * Runs a command of this program to its end, in a process of its own with `environment`. Resolves with what it wrote to
 * stderr when it failed, null when it succeeded. An abort of `signal` ends it, and rejects with the reason.
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
