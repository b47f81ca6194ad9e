/**
 * Checks for what must not be in the repository and linters do not find: registry hosts, and paths of a developer's
 * machine.
 */

/** Written with classes and groups, so that this file does not match itself. */
const FORBIDDEN = [
  { pattern: /registry[.]npmjs/, why: 'names a package registry; the lockfile and the default registry are enough' },
  { pattern: /(?<![\w.:~-])[/](?:work|farm)[/]\w/, why: "holds a path of a developer's machine" },
  { pattern: /[/]tmp[/]\w+_jobs/, why: "holds a path of a developer's machine" },
]

/** Lockfiles written with a non-default registry record a URL for each package. */
const LOCKED_URL = /"https?:[/][/]/

/** Problems of one file as `path:line: why`. `LOCKED_URL` applies to lockfiles only. */
export function getFaults(path: string, text: string): string[] {
  const rules = path.endsWith('bun.lock')
    ? [
        ...FORBIDDEN,
        { pattern: LOCKED_URL, why: 'names the host a package came from; install with the default registry' },
      ]
    : FORBIDDEN
  return text.split('\n').flatMap((line, index) => {
    const broken = rules.find(({ pattern }) => pattern.test(line))
    return broken ? [`${path}:${index + 1}: ${broken.why}`] : []
  })
}

/**
 * Problems of all files that git tracks or would add, except minified and binary ones. Throws when `root` is not a git
 * checkout, because then nothing was checked.
 */
async function repositoryFaults(root: string): Promise<string[]> {
  const git = Bun.spawnSync(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  if (git.exitCode !== 0) throw new Error(`The guards need a git checkout: ${git.stderr.toString().trim()}`)
  const paths = git.stdout
    .toString()
    .split('\0')
    .filter((path) => path !== '' && !path.endsWith('.min.js'))
  const faults = await Promise.all(paths.map(async (path) => getFaults(path, await getText(`${root}/${path}`))))
  return faults.flat()
}

async function getText(path: string): Promise<string> {
  const file = Bun.file(path)
  const text = (await file.exists()) ? await file.text() : '' // deleted but still in the index
  return text.includes('\0') ? '' : text
}

if (import.meta.main) {
  const faults = await repositoryFaults(`${import.meta.dir}/..`)
  for (const fault of faults) console.error(fault)
  process.exit(faults.length > 0 ? 1 : 0)
}
