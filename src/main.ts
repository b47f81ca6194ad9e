/** Process entry, the only file with side effects on import: sets up the runtime, then serves or runs a command. */
import { CAP_VARIABLE, outboundCap, turnsUnder } from './lib/outbound-cap.ts'

const argv = process.argv.slice(2)

/** Settings the runtime reads only at process start. The user's own values are kept. */
const SETTINGS = {
  /** The default allows 256 concurrent fetches and silently queues the rest (Bun 1.4.5). */
  [CAP_VARIABLE]: '16384',
  /**
   * Interval in ms at which the allocator returns unused parts of pages to the system. Requests need them again
   * immediately: the default of 100 ms took 6 % of a request's processor time (measured; `bench/README.md`).
   */
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: '1000',
  /**
   * Otherwise compiled code unused for 5 to 60 s is discarded, and a request after such a pause takes twice as long
   * (Bun 1.4.5). The runtime refuses to start with an unknown engine option, so check this when upgrading.
   */
  BUN_JSC_forceCodeBlockLiveness: '1',
}
/** Set in the child process to prevent a loop. */
const IS_SET = 'SLUICE_RUNTIME_IS_SET'

/** A limit the runtime does not accept counts as unset. */
const isSet = (name: string): boolean =>
  name === CAP_VARIABLE ? outboundCap(process.env[name]) !== null : Boolean(process.env[name])

/** The runtime's flags, except for the folder, which is inherited, and for `--`, after which it would not see ours. */
const flags = (): string[] =>
  process.execArgv.filter(
    (flag, at, all) => flag !== '--' && flag !== '--cwd' && !flag.startsWith('--cwd=') && all[at - 1] !== '--cwd',
  )

if (argv[0] === 'serve' && !process.env[IS_SET] && process.platform !== 'win32') {
  // Otherwise the runtime would look for the JSX settings in the current folder.
  const compiling = `--tsconfig-override=${import.meta.dir}/../tsconfig.json`
  const entry = Bun.main.startsWith('/$bunfs/') ? [] : [...flags(), compiling, Bun.main]
  try {
    const missing = Object.entries(SETTINGS).filter(([name]) => !isSet(name))
    const environment = { ...process.env, ...Object.fromEntries(missing), [IS_SET]: '1' }
    process.execve?.(process.execPath, [process.execPath, ...entry, ...argv], environment)
  } catch {
    // Not permitted: continue with the runtime's limit, which allows fewer requests.
  }
}

const { run } = await import('./boot/run.ts')
await run(argv, {
  environment: process.env,
  fetch,
  timeout: AbortSignal.timeout,
  maxTurns: turnsUnder(outboundCap(process.env[CAP_VARIABLE])),
})
