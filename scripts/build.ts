/** `bun run build`: one self-contained executable at dist/sluice, server and workers included. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const ROOT = resolve(import.meta.dir, '..')
const WORKERS = ['src/threads/reader-worker.ts', 'src/threads/writer-worker.ts', 'src/threads/replay-worker.ts']

interface BuildOptions {
  /** Path of the executable. */
  outfile: string
  /** A `bun build` target such as `bun-linux-arm64`; this machine's own when absent. Others are downloaded. */
  target?: string | undefined
}

/**
 * The `bun build` command line, to be run in the repository's root. `--production` is needed although the documentation
 * says that `--compile` implies it: without it NODE_ENV is "development". `--format=esm` allows bytecode together with
 * top-level await. `--splitting` keeps lazily imported parts, the dashboard and the commands, out of memory until they
 * are used (5 MB, Bun 1.4.5). `--entry-naming` places the workers where the code that starts them finds them by a
 * relative URL. The two `--no-compile-autoload` flags prevent the server from reading a `.env` or a `bunfig.toml`
 * preload in the working directory. The defined name leaves out the native password hash (`src/auth/passwords.ts`).
 */
export function buildCommand({ outfile, target }: BuildOptions): string[] {
  return [
    process.execPath,
    'build',
    '--compile',
    '--production',
    '--bytecode',
    '--splitting',
    '--entry-naming',
    '[name].[ext]',
    '--format=esm',
    '--sourcemap',
    '--no-compile-autoload-dotenv',
    '--no-compile-autoload-bunfig',
    '--define',
    'SLUICE_EXECUTABLE=true',
    ...(target ? [`--target=${target}`] : []),
    'src/main.ts',
    ...WORKERS,
    '--outfile',
    outfile,
  ]
}

/**
 * Builds and returns the exit code of `bun build`, whose messages are printed. Deletes the source maps beside the
 * executable, which contains them too: their names change with each build.
 */
export async function build({ outfile, ...options }: BuildOptions): Promise<number> {
  mkdirSync(dirname(outfile), { recursive: true })
  const folder = mkdtempSync(join(dirname(outfile), 'build-'))
  const built = join(folder, 'sluice')
  const command = buildCommand({ ...options, outfile: built })
  const child = Bun.spawn(command, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })
  const stop = () => child.kill('SIGKILL') // it would create the folder again
  for (const signal of SIGNALS) process.on(signal, stop)
  try {
    const code = await child.exited
    const suffix = existsSync(`${built}.exe`) ? '.exe' : ''
    if (code === 0) renameSync(built + suffix, outfile + suffix)
    return code
  } finally {
    for (const signal of SIGNALS) process.off(signal, stop)
    rmSync(folder, { recursive: true, force: true })
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

if (import.meta.main) {
  const { values } = parseArgs({
    options: { outfile: { type: 'string', default: 'dist/sluice' }, target: { type: 'string' } },
  })
  process.exit(await build({ outfile: resolve(values.outfile), target: values.target }))
}
