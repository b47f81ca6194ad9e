/**
 * What the process does once it is set up: `serve`, or one of the commands, and only that is loaded. Every failure before
 * listening is one sentence.
 */
import { ConfigError, readConfig, withEnvFile } from './env.ts'
import { databaseTrouble } from './ops/database-trouble.ts'
import { placesOf } from './ops/places.ts'
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
    process.stderr.write(`sluice: ${explain(err, outside.environment)}\n`)
    process.exit(1)
  }
}

/** Whatever is thrown behind `ConfigError` was thrown with an environment that can be read. */
const explain = (err: unknown, environment: Outside['environment']): string => {
  if (!(err instanceof Error)) return String(err)
  if (err instanceof ConfigError) return err.message
  const trouble = databaseTrouble(err, placesOf(readConfig(withEnvFile(environment))).databasePath)
  if (trouble) return `${trouble.says} ${trouble.advice}`
  if ('code' in err && err.code === 'EADDRINUSE')
    return 'the port is taken; set PORT to another one, or stop what listens there.'
  return err.message
}
