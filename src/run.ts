/**
 * What the process does once it is set up: `serve`, or one of the commands, and only that is loaded. Every failure before
 * listening is one sentence.
 */
import { isIP } from 'node:net'
import { type Config, ConfigError, readConfig, withEnvFile } from './env.ts'
import { withoutControls } from './lib/controls.ts'
import { databaseTrouble } from './ops/database-trouble.ts'
import { placesOf } from './ops/places.ts'
import type { Outside } from './serve.ts'

/** Not inside a `try`: what cannot be found there is left out of the executable without a word (measured). */
const loadService = () => import('./serve.ts')
const loadCommands = () => import('./cli/main.ts')

export const run = async (argv: readonly string[], outside: Outside): Promise<void> => {
  const [word, ...rest] = argv
  if (word === 'serve' && rest.length > 0 && !rest.some((word) => word === '--help' || word === '-h')) {
    process.stderr.write('sluice: serve takes no arguments. Set HOST and PORT in the environment.\n')
    process.exit(2)
  }
  try {
    if (word === 'serve' && rest.length === 0) {
      const { serve } = await loadService()
      return await serve(outside)
    }
    const { runCli } = await loadCommands()
    process.exitCode = await runCli(argv, {
      environment: withEnvFile(outside.environment),
      stdout: writerTo(process.stdout),
      stderr: writerTo(process.stderr),
      fetch: outside.fetch,
      timeout: outside.timeout,
    })
  } catch (err) {
    process.stderr.write(`sluice: ${explain(err, outside.environment)}\n`)
    process.exit(1)
  }
}

/** Names were typed by somebody, who must not get at the terminal, or at the order of a line, through them. */
const writerTo = (stream: NodeJS.WriteStream) => {
  stream.on('error', giveUp)
  return (text: string): void => {
    try {
      stream.write(text.split('\n').map(withoutControls).join('\n'))
    } catch (err) {
      giveUp(err as NodeJS.ErrnoException) // as: a stream throws what it would emit
    }
  }
}

/** A reader that has gone has read enough, as `head` has; otherwise what was to be shown is lost. */
const giveUp = ({ code, message }: NodeJS.ErrnoException): never => {
  if (code !== 'EPIPE') process.stderr.write(`sluice: The output could not be written: ${message}\n`)
  process.exit(1)
}

/** Whatever is thrown behind `ConfigError` was thrown with an environment that can be read. */
const explain = (err: unknown, environment: Outside['environment']): string => {
  if (!(err instanceof Error)) return String(err)
  if (err instanceof ConfigError) return err.message
  const config = readConfig(withEnvFile(environment))
  if ('syscall' in err && LISTENING.includes(err.syscall)) return explainListening(err, config)
  const trouble = databaseTrouble(err, placesOf(config).databasePath)
  return trouble ? `${trouble.says} ${trouble.advice}` : err.message
}

const LISTENING: readonly unknown[] = ['listen', 'getaddrinfo']

/** What the runtime says of a name it does not know may be any code, also that of a taken port (measured). */
const explainListening = (err: Error & { code?: unknown }, { HOST, PORT }: Config): string => {
  const where = `port ${PORT} of ${HOST}`
  if (isIP(HOST) === 0)
    return `${where} cannot be listened on: the port is taken or not for this user, or the name is not known; set HOST or PORT.`
  if (err.code === 'EADDRINUSE') return `${where} is taken; set PORT to another one, or stop what listens there.`
  return `${where} cannot be listened on: ${err.message}; set HOST to an address of this machine, and PORT to one from 1024.`
}
