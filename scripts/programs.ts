/** Finds system programs that tests use. On Debian and its derivatives, missing ones are downloaded. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

interface Program {
  /** Possible names, the most likely first. */
  names: readonly string[]
  /** Debian packages that contain it, the preferred one first. */
  packages: readonly string[]
  /**
   * Its path in the package. Such a program is unpacked into the repository and runs from there, because installing a
   * server would also start it.
   */
  file?: string
  /** Folders it may be in when it is not on the path, as a pattern; the newest version sorts last. */
  folders?: string
  /** Written before the package is installed. */
  setting?: { path: string; text: string }
}

/** The headless shell has the same engine and no window: a page takes 260 ms of processor time instead of 690. */
export const CHROMIUM: Program = {
  names: ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
  packages: ['chromium-headless-shell', 'chromium'],
}
export const NGINX: Program = { names: ['nginx'], packages: ['nginx'], file: 'usr/sbin/nginx' }
export const CADDY: Program = { names: ['caddy'], packages: ['caddy'], file: 'usr/bin/caddy' }
export const HAPROXY: Program = { names: ['haproxy'], packages: ['haproxy'], file: 'usr/sbin/haproxy' }
/** Installed, because it needs twenty libraries. The setting keeps Debian from starting a server of its own. */
export const POSTGRES: Program = {
  names: ['postgres'],
  packages: ['postgresql'],
  folders: '/usr/lib/postgresql/*/bin',
  setting: { path: '/etc/postgresql-common/createcluster.d/sluice-tests.conf', text: 'create_main_cluster = false\n' },
}

/** Absolute path; undefined if it is not on this machine. */
export function findProgram(program: Program): string | undefined {
  const PATH = [process.env.PATH, '/usr/sbin', ...getFolders(program)].join(':')
  const installed = program.names.map((name) => Bun.which(name, { PATH })).find((path) => path !== null)
  return installed ?? findUnpacked(program)
}

/**
 * Like `findProgram`, but installs a missing program with apt, which needs root. `isBest`: also if only a less
 * preferred one is present. Throws on CI when a program that is unpacked could not be fetched: its tests must run there.
 */
export async function ensureProgram(program: Program, { isBest = false } = {}): Promise<string | undefined> {
  const present = findProgram(program)
  const isEnough = isBest ? present && basename(present) === program.names[0] : present
  const mayFetch = Bun.which('apt-get') && (program.file !== undefined || isRoot())
  for (const name of isEnough || !mayFetch ? [] : program.packages) {
    console.log(`${name} is missing; fetching it with apt-get`)
    await (program.file === undefined ? install(name, program.setting) : unpack(name))
    const fetched = findProgram(program)
    if (fetched) return fetched
  }
  if (!present && program.file !== undefined && process.env.CI === 'true')
    throw new Error(`${program.names[0]} could not be fetched`)
  return present
}

function getFolders({ folders }: Program): string[] {
  const found = folders === undefined ? [] : [...new Bun.Glob(folders).scanSync({ onlyFiles: false, absolute: true })]
  return found.sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
}

/** Each folder in it is complete. */
const UNPACKED = resolve(import.meta.dir, '../node_modules/.cache/sluice/unpacked')

/** What an unpacked program needs in its environment to find its libraries. */
export function libraryPath(program: string): Record<string, string> {
  if (!program.startsWith(UNPACKED)) return {}
  const [folder] = new Bun.Glob('usr/lib/*-linux-gnu').scanSync({
    cwd: join(UNPACKED, program.slice(UNPACKED.length + 1).split('/')[0]!),
    onlyFiles: false,
    absolute: true,
  })
  return folder === undefined ? {} : { LD_LIBRARY_PATH: folder }
}

function findUnpacked({ packages, file }: Program): string | undefined {
  return file === undefined
    ? undefined
    : packages.map((name) => join(UNPACKED, name, file)).find((path) => existsSync(path))
}

async function install(name: string, setting: Program['setting']): Promise<void> {
  if (setting) {
    mkdirSync(dirname(setting.path), { recursive: true })
    writeFileSync(setting.path, setting.text)
  }
  if (await updateLists()) {
    await run(['apt-get', '-qq', 'install', '-y', '--no-install-recommends', name])
  }
}

/**
 * With its libraries, into a temporary folder that is renamed once it is complete. If another process was faster, its
 * folder stays.
 */
async function unpack(name: string): Promise<void> {
  mkdirSync(UNPACKED, { recursive: true })
  const folder = mkdtempSync(join(UNPACKED, `.${name}-`))
  try {
    if (await fetchInto(folder, name)) renameSync(folder, join(UNPACKED, name))
  } catch (error) {
    if (!existsSync(join(UNPACKED, name))) throw error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Whether it is complete. Only root can update the package lists. Other users get those that are present. */
async function fetchInto(folder: string, name: string): Promise<boolean> {
  const download = async () => {
    const names = [name, ...(await getMissingLibraries(name))]
    return run(['apt-get', '-qq', '-o', 'APT::Sandbox::User=root', 'download', ...names], folder)
  }
  const isHere = (await download()) || (isRoot() && (await updateLists()) && (await download()))
  if (!isHere) return false
  for (const archive of new Bun.Glob('*.deb').scanSync({ cwd: folder, absolute: true }))
    if (!(await run(['dpkg', '--extract', archive, folder]))) return false
  return true
}

/** One process at a time: apt-get fails while another one updates. */
function updateLists(): Promise<boolean> {
  return run(['flock', '/var/lib/apt/lists', 'apt-get', '-qq', 'update'])
}

/** The packages of libraries that an installation would add. */
async function getMissingLibraries(name: string): Promise<string[]> {
  const argv = ['apt-get', '-qq', '--simulate', '--no-install-recommends', 'install', name]
  const plan = await new Response(Bun.spawn(argv, { stdio: ['ignore', 'pipe', 'ignore'] }).stdout).text()
  return [...plan.matchAll(/^Inst (lib\S+)/gm)].map(([, library]) => library!)
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

/** Whether it succeeded. Prints its error output. */
async function run(argv: string[], cwd = '/'): Promise<boolean> {
  const child = Bun.spawn(argv, {
    cwd,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return (await child.exited) === 0
}
