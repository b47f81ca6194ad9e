/** Process entry, the only file with side effects on import: lifts the runtime's outbound cap, then serves or runs a command. */

const CAP = 'BUN_CONFIG_MAX_HTTP_REQUESTS'
const argv = process.argv.slice(2)

/**
 * The runtime lets 256 fetches run at once and silently queues the rest; only a variable set before the process starts
 * lifts that (measured, oven-sh/bun 1.4.5). Once set it is inherited, so this cannot loop.
 */
if (argv[0] === 'serve' && !process.env[CAP] && process.platform !== 'win32') {
  // How pages are compiled the runtime would else look up in the folder it was started from.
  const compiling = `--tsconfig-override=${import.meta.dir}/../tsconfig.json`
  const entry = Bun.main.startsWith('/$bunfs/') ? [] : [compiling, Bun.main]
  try {
    process.execve?.(process.execPath, [process.execPath, ...entry, ...argv], { ...process.env, [CAP]: '16384' })
  } catch {
    // Not allowed here: the service goes on with the cap, and admits no more turns than fit under it.
  }
}

const { run } = await import('./run.ts')
await run(argv, {
  environment: process.env,
  fetch,
  timeout: AbortSignal.timeout,
  maxTurns: process.env[CAP] ? Number.POSITIVE_INFINITY : 200,
})
