/** `bun run release`: every file of a release in dist/release: programs, checksums, SBOM, installer, compose file. */
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from './build.ts'

const ROOT = resolve(import.meta.dir, '..')

/**
 * File name → the `bun build` target. The x64 builds also run on CPUs without AVX2, such as old NAS boxes. `install.sh`
 * composes the same names from `uname`.
 */
export const PROGRAMS: Readonly<Record<string, string>> = {
  'sluice-linux-x64': 'bun-linux-x64-baseline',
  'sluice-linux-arm64': 'bun-linux-arm64',
  'sluice-linux-x64-musl': 'bun-linux-x64-musl-baseline',
  'sluice-linux-arm64-musl': 'bun-linux-arm64-musl',
  'sluice-darwin-x64': 'bun-darwin-x64-baseline',
  'sluice-darwin-arm64': 'bun-darwin-arm64',
  'sluice-windows-x64': 'bun-windows-x64-baseline',
  'sluice-windows-arm64': 'bun-windows-arm64',
}

/** Builds the named programs, all by default, into `folder`. Returns the names of the written files. */
export const release = async (folder: string, names: readonly string[] = Object.keys(PROGRAMS)): Promise<string[]> => {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const files: string[] = []
  for (const name of names) files.push(await program(folder, name))
  files.push(sbom(folder))
  for (const file of ['install.sh', 'compose.yaml']) {
    copyFileSync(join(ROOT, file), join(folder, file))
    files.push(file)
  }
  const sums = files.map((file) => `${sha256(join(folder, file))}  ${file}\n`)
  writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''))
  return [...files, 'SHA256SUMS']
}

/** A gzip file, except on Windows, which cannot open one. */
const program = async (folder: string, name: string): Promise<string> => {
  const target = PROGRAMS[name]
  if (!target) throw new Error(`There is no program "${name}". There are: ${Object.keys(PROGRAMS).join(', ')}.`)
  const outfile = join(folder, name)
  if ((await build({ outfile, target })) !== 0) throw new Error(`${name} could not be built.`)
  if (target.includes('windows')) return `${name}.exe`
  writeFileSync(`${outfile}.gz`, Bun.gzipSync(readFileSync(outfile)))
  rmSync(outfile)
  return `${name}.gz`
}

/** npm reads the installed packages and writes CycloneDX 1.5, so no lockfile parser is needed here. */
const sbom = (folder: string): string => {
  const { stdout, stderr, exitCode } = Bun.spawnSync(
    ['npm', 'sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--omit', 'dev'],
    { cwd: ROOT },
  )
  if (exitCode !== 0) throw new Error(`npm sbom failed: ${stderr.toString()}`)
  const file = 'sluice.cdx.json'
  writeFileSync(join(folder, file), stdout)
  return file
}

const sha256 = (path: string): string => new Bun.CryptoHasher('sha256').update(readFileSync(path)).digest('hex')

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { out: { type: 'string', default: join(ROOT, 'dist/release') } },
    allowPositionals: true,
  })
  const files = await release(resolve(values.out), positionals.length > 0 ? positionals : undefined)
  process.stdout.write(`${files.join('\n')}\n`)
}
