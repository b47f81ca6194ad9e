/**
 * What the process does once it is set up: `serve`, or one of the commands, and only that is loaded. Every failure before
 * listening is one sentence.
 */
import { withEnvFile } from './env.ts'
import type { Outside } from './serve.ts'

/** Not inside a `try`: what cannot be found there is left out of the executable without a word (measured). */
const loadService = () => import('./serve.ts')
const loadCommands = () => import('./cli/main.ts')

export const run = async (argv: readonly string[], outside: Outside): Promise<void> => {
  const [word, ...rest] = argv
  if (word === 'serve' && rest.length > 0 && !rest.includes('--help')) {
    process.stderr.write('sluice: serve takes no arguments; set HOST and PORT in the environment.\n')
    process.exit(2)
  }
  try {
    if (word === 'serve' && rest.length === 0) {
      const { serve } = await loadService()
      return await serve(outside)
    }
    const { runCli } = await loadCommands()
    process.exitCode = await runCli(word === 'serve' ? ['help'] : argv, {
      environment: withEnvFile(outside.environment),
      stdout: (text) => void process.stdout.write(text),
      stderr: (text) => void process.stderr.write(text),
      fetch: outside.fetch,
    })
  } catch (err) {
    process.stderr.write(`sluice: ${explain(err)}\n`)
    process.exit(1)
  }
}

const explain = (err: unknown): string => {
  if (err instanceof Error && 'code' in err && err.code === 'EADDRINUSE')
    return 'the port is taken; set PORT to another one, or stop what listens there.'
  return err instanceof Error ? err.message : String(err)
}
