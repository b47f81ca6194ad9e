/** The Dockerfile against the repository. It is read, not run: building it needs a Docker daemon. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import manifest from '../package.json'
import { buildCommand } from '../scripts/build.ts'

const ROOT = resolve(import.meta.dir, '..')
const STAGES = readFileSync(`${ROOT}/Dockerfile`, 'utf8')
  .split(/^(?=FROM )/m)
  .map(instructionsOf)
  .filter((stage) => stage.length > 0)
const [building = [], final = []] = STAGES

interface Instruction {
  name: string
  value: string
}

describe('the build stage', () => {
  test('runs on the Bun that package.json pins', () => {
    expect(valuesOf(building, 'FROM')).toEqual([`oven/${manifest.packageManager.replace('@', ':')} AS build`])
  })

  test('is built by the build script, to where the final stage copies from', () => {
    expect(manifest.scripts.build).toBe('bun scripts/build.ts')
    expect(valuesOf(building, 'RUN').at(-1)).toBe('bun run build --outfile dist/sluice')
    expect(valuesOf(final, 'COPY')).toEqual(['--from=build /source/dist/sluice /usr/local/bin/sluice'])
  })

  test('installs what the lockfile says and nothing for development', () => {
    expect(valuesOf(building, 'RUN')[0]).toBe('bun install --frozen-lockfile --production')
  })

  test.each(copiedFiles())('copies %s, which exists and is let into the build context', (path) => {
    expect(existsSync(`${ROOT}/${path}`)).toBe(true)
    const ignore = readFileSync(`${ROOT}/.dockerignore`, 'utf8').split('\n')
    expect(ignore).toContain('*')
    expect(ignore).toContain(`!${path}`)
  })

  test('has every source the executable is made of', () => {
    const entries = buildCommand({ outfile: 'dist/sluice' }).filter((word) => word.endsWith('.ts'))
    expect(entries).toContain('src/main.ts')
    expect(entries.every((entry) => copiedFiles().some((path) => entry.startsWith(`${path}/`)))).toBe(true)
  })
})

describe('the final stage', () => {
  test('runs without root and keeps its data in one volume', () => {
    expect(valuesOf(final, 'USER')).toEqual(['65532:65532'])
    expect(valuesOf(final, 'VOLUME')).toEqual(['/data'])
    expect(valuesOf(final, 'ENV').join(' ')).toContain('HOST=0.0.0.0 CODEX_LB_DATA_DIR=/data')
    expect(valuesOf(final, 'RUN')).toEqual(['install -d -o 65532 -g 65532 -m 1777 /data'])
  })

  test('serves by default, says whether it is well, and takes other commands', () => {
    expect(valuesOf(final, 'ENTRYPOINT')).toEqual(['["/usr/local/bin/sluice"]'])
    expect(valuesOf(final, 'CMD')).toEqual(['["serve"]'])
    expect(valuesOf(final, 'HEALTHCHECK')[0]).toEndWith('CMD ["/usr/local/bin/sluice", "healthcheck"]')
    expect(valuesOf(final, 'EXPOSE')).toEqual(['2455 1455'])
  })
})

test('the build command keeps a hostile working directory out and NODE_ENV right', () => {
  const command = buildCommand({ outfile: 'out', target: 'bun-linux-arm64' })
  for (const flag of ['--compile', '--production', '--bytecode', '--splitting', '--format=esm', '--sourcemap']) {
    expect(command).toContain(flag)
  }
  expect(command).toContain('--no-compile-autoload-dotenv')
  expect(command).toContain('--no-compile-autoload-bunfig')
  expect(command).toContain('--target=bun-linux-arm64')
  expect(command.slice(-2)).toEqual(['--outfile', 'out'])
})

function instructionsOf(stage: string): Instruction[] {
  const lines = stage.replaceAll(/\\\n\s*/g, '').split('\n')
  return lines.flatMap((line) => {
    const [, name, value] = /^([A-Z]+) +(.+)$/.exec(line) ?? []
    return name && value ? [{ name, value }] : []
  })
}

function valuesOf(stage: Instruction[], name: string): string[] {
  return stage.filter((one) => one.name === name).map((one) => one.value)
}

function copiedFiles(): string[] {
  return valuesOf(building, 'COPY').flatMap((value) => value.split(' ').slice(0, -1))
}
