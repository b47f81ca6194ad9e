/** Finds the system's Chromium for the browser tests, and installs it where that is possible without asking. */

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** Absolute path of an installed Chromium or Chrome, or undefined. */
export function findChromium(): string | undefined {
  return NAMES.map((name) => Bun.which(name)).find((path) => path !== null) ?? undefined
}

/** Like `findChromium`, but as root on Debian and its kin a missing browser is installed with apt first. */
export async function ensureChromium(): Promise<string | undefined> {
  const present = findChromium()
  if (present || process.getuid?.() !== 0 || !Bun.which('apt-get')) return present
  console.log('chromium is missing; installing it with apt-get')
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', 'chromium']]) {
    const apt = Bun.spawn(['apt-get', '-qq', ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    if ((await apt.exited) !== 0) return undefined
  }
  return findChromium()
}
