/** `bun run build`: one self-contained executable at dist/sluice, server and workers included. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const ROOT = resolve(import.meta.dir, '..')
const WORKERS = ['src/threads/reader-worker.ts', 'src/threads/checkpoint-worker.ts', 'src/threads/replay-worker.ts']

interface BuildOptions {
  /** Where the executable goes. */
  outfile: string
  /** A `bun build` target such as `bun-linux-arm64`; this machine's own when absent. Others are downloaded. */
  target?: string | undefined
}

/**
 * The `bun build` command line, to be run in the repository's root.
 *
 * `--production` is said although `--compile` claims to imply it: without it NODE_ENV is fixed to "development".
 * `--format=esm` is what lets bytecode and top-level await live together. `--splitting` keeps out of memory what is imported
 * when it is needed: the dashboard, the commands (5 MB, measured). `--entry-naming` puts the workers beside the code that
 * starts them by a relative URL. The two `--no-compile-autoload` flags keep a `.env` or a
 * `bunfig.toml` preload in the working directory from reaching the server. The name that is defined leaves the native
 * password hash out (`src/auth/passwords.ts`).
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
 * Builds and returns the exit code of `bun build`, whose messages go to this process's own output. The maps it writes beside the
 * executable, one a part and each time under other names, are thrown away: they are in the executable, too.
 */
export async function build({ outfile, ...options }: BuildOptions): Promise<number> {
  mkdirSync(dirname(outfile), { recursive: true })
  const folder = mkdtempSync(join(dirname(outfile), 'build-'))
  const built = join(folder, 'sluice')
  const command = buildCommand({ ...options, outfile: built })
  const child = Bun.spawn(command, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })
  const stop = () => child.kill('SIGKILL') // it would make the folder anew
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
