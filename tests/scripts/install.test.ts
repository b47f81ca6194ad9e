/** `install.sh` against a small local release: what it installs, and when it fails. */
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { PROGRAMS } from '../../scripts/release.ts'

const SCRIPT = resolve(import.meta.dir, '../../install.sh')
const scratch = mkdtempSync(join(tmpdir(), 'sluice-install-'))
const served = join(scratch, 'release')
const home = join(scratch, 'home')
const tools = join(scratch, 'tools')
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: async ({ url }) => {
    const file = Bun.file(join(served, new URL(url).pathname))
    return (await file.exists()) ? new Response(file) : new Response('', { status: 404 })
  },
})

beforeEach(() => {
  for (const folder of [served, home, tools]) {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
  }
})

afterAll(async () => {
  await server.stop(true)
  rmSync(scratch, { recursive: true })
})

describe('a release for this machine', () => {
  test('is installed for the user, and prints how to start it', async () => {
    publish('sluice-linux-x64.gz', 'echo 1.2.3')
    const { exitCode, stdout, stderr } = await install([address()])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const program = join(home, '.local/bin/sluice')
    expect(stdout).toContain(`Installed Sluice 1.2.3 to ${program}\nStart it with: ${program} serve\n`)
    expect(Bun.spawnSync([program, 'version']).stdout.toString()).toBe('1.2.3\n')
  })

  test('replaces an earlier one and leaves nothing beside it', async () => {
    const folder = join(scratch, 'bin')
    publish('sluice-linux-x64.gz', 'echo 1')
    await install(['--to', folder, address()])
    publish('sluice-linux-x64.gz', 'echo 2')
    await install(['--to', folder, `${address()}/`])
    expect(readdirSync(folder)).toEqual(['sluice'])
    expect(readFileSync(join(folder, 'sluice'), 'utf8')).toContain('echo 2')
  })

  test.each([
    ['Linux', 'aarch64', 'sluice-linux-arm64.gz'],
    ['Darwin', 'arm64', 'sluice-darwin-arm64.gz'],
    ['Darwin', 'x86_64', 'sluice-darwin-x64.gz'],
  ])('on %s %s is %s', async (os, machine, name) => {
    tool('uname', `[ "$1" = -s ] && echo ${os} || echo ${machine}`)
    publish(name, 'echo 1')
    expect((await install([address()])).stderr).toBe('')
    expect(Object.keys(PROGRAMS)).toContain(name.replace('.gz', ''))
  })
})

describe('nothing is installed', () => {
  test.each([
    ['a changed program', () => writeFileSync(join(served, 'sluice-linux-x64.gz'), Bun.gzipSync('echo evil'))],
    ['a truncated program', () => writeFileSync(join(served, 'sluice-linux-x64.gz'), 'short')],
    ['a missing program', () => rmSync(join(served, 'sluice-linux-x64.gz'))],
    ['a release without this program', () => writeFileSync(join(served, 'SHA256SUMS'), `${'0'.repeat(64)}  other\n`)],
    ['no checksums', () => rmSync(join(served, 'SHA256SUMS'))],
  ])('for %s', async (_what, spoil) => {
    publish('sluice-linux-x64.gz', 'echo 1')
    spoil()
    const { exitCode, stderr } = await install([address()])
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/^(curl: .*\n)?install\.sh: .+\.\n$/)
    expect(existsSync(join(home, '.local'))).toBe(false)
  })

  test('when the program does not run here', async () => {
    publish('sluice-linux-x64.gz', 'exit 3')
    expect((await install([address()])).stderr).toContain('does not run on this machine')
    expect(existsSync(join(home, '.local'))).toBe(false)
  })

  test.each([
    ['http://example.test/x'],
    ['ftp://example.test/x'],
    ['http://localhost.example.test/x'],
    ['http://127.0.0.1.example.test/'],
  ])('from %s: the checksum would come over the same connection', async (url) => {
    const { exitCode, stderr } = await install([url])
    expect(exitCode).toBe(1)
    expect(stderr).toContain('must start with https://')
  })

  test.each([
    ['SunOS', 'x86_64', 'no installer for SunOS'],
    ['Linux', 'riscv64', 'no program for riscv64'],
  ])('on %s %s', async (os, machine, reason) => {
    tool('uname', `[ "$1" = -s ] && echo ${os} || echo ${machine}`)
    expect((await install([address()])).stderr).toContain(reason)
  })
})

const address = () => `http://127.0.0.1:${server.port}`

function publish(name: string, script: string): void {
  const bytes = Bun.gzipSync(`#!/bin/sh\n${script}\n`)
  writeFileSync(join(served, name), bytes)
  const sum = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  writeFileSync(join(served, 'SHA256SUMS'), `${sum}  ${name}\n`)
}

function tool(name: string, script: string): void {
  writeFileSync(join(tools, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(tools, name), 0o755)
}

async function install(args: string[]) {
  const child = Bun.spawn(['sh', SCRIPT, ...args], {
    env: { PATH: `${tools}:${process.env.PATH}`, HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}
