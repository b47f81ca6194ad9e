/** The table of commands: help with examples that work, hints about typos, and completion. */
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CommandSpec, getName } from '../../src/cli/command-spec.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import { runCli } from '../../src/cli/main.ts'
import { CommanderError, createProgram } from '../../src/cli/program.ts'
import { getExpected } from '../../src/cli/settings.ts'
import { SETTING_NAMES } from '../../src/settings/schema.ts'

const everyCommand = (specs: readonly CommandSpec[], parents: string[] = []): { path: string[]; spec: CommandSpec }[] =>
  specs.flatMap((spec) => {
    const path = [...parents, getName(spec)]
    return [{ path, spec }, ...everyCommand(spec.commands ?? [], path)]
  })

const ALL = everyCommand(Object.values(COMMANDS).flat())
const RUNNING = ALL.filter(({ spec }) => spec.run !== undefined)

const cli = async (...argv: string[]) => {
  const said: Record<'stdout' | 'stderr', string[]> = { stdout: [], stderr: [] }
  const exitCode = await runCli(argv, {
    environment: {},
    stdout: (text) => void said.stdout.push(text),
    stderr: (text) => void said.stderr.push(text),
    fetch, // no command here uses it
    timeout: () => new AbortController().signal,
  })
  return { exitCode, stdout: said.stdout.join(''), stderr: said.stderr.join('') }
}

/** The words after the last `sluice`, without those of the shell. */
const argumentsIn = (example: string): string[] =>
  example
    .replace(/^.*\bsluice (?=[a-z-])/, '')
    .replace(/( [<>&|].*|\))$/, '')
    .split(' ')

/** The command that `argv` would run; nothing is run. */
const understoodAs = async (argv: string[]): Promise<string | undefined> => {
  const ran: CommandSpec[] = []
  const program = createProgram({ stdout: () => {}, stderr: () => {} }, async (spec) => void ran.push(spec))
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (err) {
    return err instanceof CommanderError && err.code === 'commander.version' ? 'version' : String(err)
  }
  return ALL.find(({ spec }) => spec === ran[0])?.path.join(' ')
}

describe('every command', () => {
  test.each(RUNNING.map(({ path, spec }) => [path.join(' '), spec] as const))(
    '%s has two examples that parse',
    async (name, spec) => {
      expect(spec.examples?.length ?? 0).toBeGreaterThanOrEqual(2)
      for (const example of spec.examples ?? []) {
        const expected = example.endsWith(' --version') ? 'version' : name
        expect([example, await understoodAs(argumentsIn(example))]).toEqual([example, expected])
      }
    },
  )

  test.each(ALL.map(({ path, spec }) => [path.join(' '), path, spec] as const))(
    '%s has help with two examples',
    async (_, path, spec) => {
      for (const argv of [
        ['help', ...path],
        [...path, '--help'],
        [...path, '-h'],
      ]) {
        const { exitCode, stdout, stderr } = await cli(...argv)
        expect([exitCode, stderr]).toEqual([0, ''])
        expect(stdout).toStartWith(`Usage: sluice ${path.join(' ')}`)
        for (const example of spec.examples ?? []) expect(stdout).toContain(`  ${example}\n`)
        const examples = stdout.split('\nExamples:\n')[1]?.trimEnd().split('\n') ?? []
        expect(examples.length).toBeGreaterThanOrEqual(2)
        for (const example of examples)
          if (!example.endsWith(' --version'))
            expect(await understoodAs(argumentsIn(example.trim()))).toStartWith(path.join(' '))
      }
    },
  )
})

test('without a command the help is printed', async () => {
  const bare = await cli()
  expect(bare).toEqual(await cli('help'))
  expect(bare).toMatchObject({ exitCode: 0, stderr: '' })
  for (const spec of Object.values(COMMANDS).flat()) expect(bare.stdout).toContain(`\n  ${getName(spec)} `)
})

test.each([
  [['keys', 'creat'], "sluice: Unknown command 'creat'. Did you mean create?", 'keys'],
  [['statsu'], "sluice: Unknown command 'statsu'. Did you mean status?", ''],
  [['help', 'keys', 'nope'], "sluice: Unknown command 'nope'.", 'keys'],
  [['keys', 'create', '--nmae', 'x'], "sluice: Unknown option '--nmae'. Did you mean --name?", 'keys create'],
  [['accounts', 'pause'], "sluice: Missing required argument 'account'.", 'accounts pause'],
  [['keys', 'create', '--name'], "sluice: Option '--name <name>' argument missing.", 'keys create'],
  [['users', 'list', 'x'], 'sluice: Too many arguments', 'users list'],
])('%j is an error with a pointer to the help', async (argv, says, path) => {
  const { exitCode, stdout, stderr } = await cli(...argv)
  expect([exitCode, stdout]).toEqual([2, ''])
  expect(stderr).toStartWith(says)
  expect(stderr).toEndWith(`Run "${['sluice', 'help', path].filter(Boolean).join(' ')}" for help.\n`)
})

test('the allowed values of a setting are described without schema jargon', () => {
  for (const name of SETTING_NAMES) {
    expect(getExpected(name)).toMatch(
      /^(a whole number from|a number (from|above)|true or false|one of|text|JSON with)/,
    )
    expect(getExpected(name)).not.toMatch(/undefined|null|string|int|received/i)
  }
  expect(getExpected('relativeAvailabilityTopK')).toBe('a whole number from 1 to 20')
  expect(getExpected('relativeAvailabilityPower')).toBe('a number above 0, up to 16')
  expect(getExpected('singleAccountId')).toBe('text of at most 255 characters, or none')
})

describe('completion', () => {
  test.each([
    ['', ['status', 'accounts', 'keys', 'help']],
    ['st', ['status']],
    ['keys ', ['create', 'list', 'test', 'edit', 'regenerate', 'revoke', 'delete', '--help']],
    ['keys create --n', ['--name']],
    ['backup ver', ['verify']],
    ['completion ', ['bash', 'zsh', 'fish']],
    ['settings get ke', []],
  ])('in bash after "sluice %s"', async (typed, expected) => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-completion-'))
    try {
      const words = `sluice ${typed}`.split(' ')
      const { stdout } = await cli('completion', 'bash')
      const ask = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _sluice`
      writeFileSync(join(folder, 'script'), `${stdout}\n${ask}\nprintf '%s\\n' "\${COMPREPLY[@]}"\n`)
      const bash = Bun.spawnSync(['bash', '--norc', '--noprofile', join(folder, 'script')])
      const offered = bash.stdout.toString().trim().split('\n').filter(Boolean)
      expect(bash.stderr.toString()).toBe('')
      if (expected.length === 0) expect(offered).toEqual([])
      else expect(offered).toEqual(expect.arrayContaining(expected))
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test.each(['zsh', 'fish'])('for %s contains every command and option', async (shell) => {
    const { exitCode, stdout } = await cli('completion', shell)
    expect(exitCode).toBe(0)
    for (const { path, spec } of ALL) {
      expect(stdout).toContain(`'${path.join(' ')}'`)
      for (const { flags } of spec.options ?? []) expect(stdout).toContain(/--([\w-]+)/.exec(flags)?.[1] ?? '?')
    }
  })
})
