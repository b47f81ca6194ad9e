/** Process entry, the only file with side effects on import: gives the runtime its settings, then serves or runs a command. */
import { CAP_VARIABLE, outboundCap, turnsUnder } from './lib/outbound-cap.ts'

const argv = process.argv.slice(2)

/** What the runtime reads but once, when its process starts. What people set themselves stands. */
const SETTINGS = {
  /** It lets 256 fetches run at once and silently queues the rest (measured, oven-sh/bun 1.4.5). */
  [CAP_VARIABLE]: '16384',
  /**
   * Ms from one search of its allocator for free parts of pages, to give them back, to the next. A turn wants them again at
   * once: at the 100 ms it has by itself, 6 % of a turn's processor time went there (measured; `bench/README.md`).
   */
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: '1000',
  /**
   * Else compiled code is thrown away when it was not run for 5 to 60 s, and a turn after such a pause takes twice as long
   * (measured). The runtime does not start with a name of its engine's that it does not know: look here when it is raised.
   */
  BUN_JSC_forceCodeBlockLiveness: '1',
}
/** Set with them, and inherited, so that this cannot loop. */
const IS_SET = 'SLUICE_RUNTIME_IS_SET'

/** A limit that the runtime would not take is none. */
const isSet = (name: string): boolean =>
  name === CAP_VARIABLE ? outboundCap(process.env[name]) !== null : Boolean(process.env[name])

/** Those of the runtime, but for the folder, which is inherited, and for `--`, behind which it would see no flag of ours. */
const flags = (): string[] =>
  process.execArgv.filter(
    (flag, at, all) => flag !== '--' && flag !== '--cwd' && !flag.startsWith('--cwd=') && all[at - 1] !== '--cwd',
  )

if (argv[0] === 'serve' && !process.env[IS_SET] && process.platform !== 'win32') {
  // How pages are compiled the runtime would else look up in the folder it was started from.
  const compiling = `--tsconfig-override=${import.meta.dir}/../tsconfig.json`
  const entry = Bun.main.startsWith('/$bunfs/') ? [] : [...flags(), compiling, Bun.main]
  try {
    const missing = Object.entries(SETTINGS).filter(([name]) => !isSet(name))
    const environment = { ...process.env, ...Object.fromEntries(missing), [IS_SET]: '1' }
    process.execve?.(process.execPath, [process.execPath, ...entry, ...argv], environment)
  } catch {
    // Not allowed here: the service goes on with the limit the runtime has, which fewer turns fit under.
  }
}

const { run } = await import('./run.ts')
await run(argv, {
  environment: process.env,
  fetch,
  timeout: AbortSignal.timeout,
  maxTurns: turnsUnder(outboundCap(process.env[CAP_VARIABLE])),
})
