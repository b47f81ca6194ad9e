/**
 * Runs `serve` or a command and loads only what it needs. Failures before the server listens are reported in one
 * sentence.
 */
import { isIP } from 'node:net'
import { withoutControls } from '../lib/controls.ts'
import { getDatabaseProblem } from '../ops/database-problem.ts'
import { getFolderPaths } from '../ops/folder-paths.ts'
import { type Config, ConfigError, readConfig, withEnvFile } from './env.ts'
import type { Outside } from './serve.ts'
import { type Link, openLink } from './worker-messages.ts'

/** Not inside a `try`, where the bundler silently omits unresolved imports (Bun 1.4.5). */
const loadService = () => import('./serve.ts')
const loadSupervisor = () => import('./supervise.ts')
const loadCommands = () => import('../cli/main.ts')

export const run = async (argv: readonly string[], outside: Outside): Promise<void> => {
  const [word, ...rest] = argv
  const link = openLink()
  if (link) return runWorker(outside, link)
  const isServe = word === 'serve' && !rest.some((word) => word === '--help' || word === '-h')
  const processes = isServe ? processesOf(rest) : 1
  try {
    if (isServe) {
      if (canSupervise()) {
        const { supervise } = await loadSupervisor()
        process.exit(await supervise(outside.environment, processes))
      }
      const { serve } = await loadService()
      return await serve(outside, null)
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

const MAX_PROCESSES = 64

/** Ends this process when the arguments of `serve` are wrong. */
const processesOf = (args: readonly string[]): number => {
  if (args.length === 0) return 1
  const [name, value] = args.join(' ').split(/[ =]/, 2)
  const isKnown = name === '--processes' && args.length <= (args[0]?.includes('=') ? 1 : 2)
  if (!isKnown) refuse('serve takes only --processes. Set HOST and PORT in the environment.')
  const processes = Number(value)
  if (!Number.isInteger(processes) || processes < 1 || processes > MAX_PROCESSES)
    refuse(`--processes must be a whole number from 1 to ${MAX_PROCESSES}.`)
  if (processes > 1 && !canShare()) refuse('--processes works on Linux only: elsewhere processes cannot share a port.')
  return processes
}

const refuse = (why: string): void => {
  process.stderr.write(`sluice: ${why}\n`)
  process.exit(2)
}

const canShare = (): boolean => process.platform === 'linux' && canSupervise()

/** Windows has no shared ports, and with `--watch` the runtime itself restarts the server. */
const canSupervise = (): boolean =>
  process.platform !== 'win32' && !process.execArgv.some((flag) => flag === '--watch' || flag === '--hot')

const runWorker = async (outside: Outside, link: Link): Promise<void> => {
  const { serve } = await loadService()
  try {
    await serve(outside, link)
  } catch (err) {
    const message = explain(err, outside.environment)
    process.stderr.write(`sluice: ${message}\n`)
    link.send({ kind: 'failed', message })
    process.exit(1)
  }
}

/** Removes control characters, so that names cannot control the terminal or reverse text. */
const writerTo = (stream: NodeJS.WriteStream) => {
  stream.on('error', giveUp)
  return (text: string): void => {
    try {
      stream.write(text.split('\n').map(withoutControls).join('\n'))
    } catch (err) {
      giveUp(err as NodeJS.ErrnoException) // a stream throws what it would emit
    }
  }
}

/** A closed reader such as `head` has read enough. Any other failure loses output and is reported. */
const giveUp = ({ code, message }: NodeJS.ErrnoException): never => {
  if (code !== 'EPIPE') process.stderr.write(`sluice: The output could not be written: ${message}\n`)
  process.exit(1)
}

/** Errors other than `ConfigError` occur after reading the environment, so it can be read again here. */
const explain = (err: unknown, environment: Outside['environment']): string => {
  if (!(err instanceof Error)) return String(err)
  if (err instanceof ConfigError) return err.message
  const config = readConfig(withEnvFile(environment))
  if ('syscall' in err && LISTENING.includes(err.syscall)) return explainListening(err, config)
  const trouble = getDatabaseProblem(err, getFolderPaths(config).databasePath)
  return trouble ? `${trouble.says} ${trouble.advice}` : err.message
}

const LISTENING: readonly unknown[] = ['listen', 'getaddrinfo']

/** For an unknown host name the runtime reports any code, even that of a port in use (Bun 1.4.5). */
const explainListening = (err: Error & { code?: unknown }, { HOST, PORT }: Config): string => {
  const where = `${HOST} port ${PORT}`
  if (isIP(HOST) === 0)
    return `Cannot listen on ${where}: the port is in use or not allowed, or the host name is unknown. Set HOST or PORT.`
  if (err.code === 'EADDRINUSE')
    return `Cannot listen on ${where}: it is in use. Stop the program that uses it, or set PORT.`
  return `Cannot listen on ${where}: ${err.message}. Set HOST to an address of this machine and PORT to 1024 or higher.`
}
