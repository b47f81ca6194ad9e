/** The real Claude Code in its own home folder, without internet, in print mode. */
import { expect } from 'bun:test'
import { existsSync, globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { snippets } from '../../../views/keys/snippets.ts'
import { runCommand } from '../../support/spawn.ts'
import { type ClaudeChat, driveClaudeChat } from './claude-chat.ts'
import { TWO_ACCOUNTS } from './session.ts'
import { startTrap } from './trap.ts'
import { startWorld, type World, type WorldOptions } from './world.ts'

const PROGRAM = resolve(import.meta.dir, '../node_modules/@anthropic-ai/claude-code-linux-x64/claude')
const DEADLINE_MS = 110_000
const JSON_LINES = ['-p', '--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose']

export interface ClaudeRun {
  exitCode: number
  /** The result of `--output-format json`. */
  result: { is_error: boolean; result: string; session_id: string; num_turns: number; stop_reason?: string }
  stderr: string
}

export interface ClaudeCode extends Disposable {
  /** `claude -p` in the working folder; throws after 110 s. */
  run(...args: string[]): Promise<ClaudeRun>
  /** Starts a process for several messages of one conversation. Much faster than a `run` for each. */
  chat(...args: string[]): ClaudeChat
  /** Starts it as a person does, in a terminal, with a first message. */
  open(prompt: string): ClaudeTerminal
  /** The file in which the client keeps this conversation. */
  transcript(sessionId: string): string
  /** Attempts to leave this machine: `CONNECT host:443`. */
  readonly sideCalls: readonly string[]
}

export interface ClaudeTerminal extends AsyncDisposable {
  /** Everything written to the terminal, with its control sequences. */
  output(): string
  /** Presses a key. */
  press(key: string): void
}

interface ClaudeOptions {
  /** In the working folder. */
  files?: Record<string, string>
  /** Replaces variables of the settings that the dashboard prints. */
  env?: Record<string, string>
}

/**
 * Runs a test with a server of its own. At its end the client has contacted nothing but Sluice, and the stand-in recorded
 * nothing odd.
 */
export async function withClaudeCode(
  { settings, ...options }: ClaudeOptions & Pick<WorldOptions, 'settings'>,
  use: (started: { world: World; claude: ClaudeCode }) => Promise<void>,
): Promise<void> {
  await using world = await startWorld({ ...TWO_ACCOUNTS, settings: { ...TWO_ACCOUNTS.settings, ...settings } })
  using claude = installClaudeCode(world, options)
  await use({ world, claude })
  expect(claude.sideCalls).toEqual([])
  expect(world.upstream.oddities).toEqual([])
}

/** Whether there is a build of it for this machine. */
export const hasClaudeCode = (): boolean => existsSync(PROGRAM)

/** Configured with what the dashboard prints for the world's key. */
export function installClaudeCode({ door, key }: Pick<World, 'door' | 'key'>, options: ClaudeOptions = {}): ClaudeCode {
  const home = mkdtempSync(join(tmpdir(), 'claude-home-'))
  const folder = join(home, 'work')
  mkdirSync(folder)
  mkdirSync(join(home, '.claude'))
  const printed = snippets({ baseUrl: door.url, key, model: 'gpt-5.5' }).find(({ id }) => id === 'claude-code')
  const settings: { env: Record<string, string> } = JSON.parse(printed?.parts[0]?.text ?? '')
  Object.assign(settings.env, options.env)
  writeFileSync(join(home, '.claude/settings.json'), JSON.stringify(settings))
  const seen = { hasTrustDialogAccepted: true }
  writeFileSync(
    join(home, '.claude.json'),
    JSON.stringify({ hasCompletedOnboarding: true, theme: 'dark', projects: { [folder]: seen } }),
  )
  for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(folder, name), text)
  const trap = startTrap()
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    TZ: 'UTC',
    HTTP_PROXY: trap.url,
    HTTPS_PROXY: trap.url,
    NO_PROXY: '127.0.0.1,localhost',
  }
  return {
    run: async (...args) => {
      const options = { command: [PROGRAM], cwd: folder, env, timeoutMs: DEADLINE_MS }
      const { exitCode, stdout, stderr } = await runCommand(['-p', '--output-format', 'json', ...args], options)
      try {
        return { exitCode, result: JSON.parse(stdout), stderr }
      } catch {
        throw new Error(`Claude Code printed no JSON:\n${stdout}\n${stderr}`)
      }
    },
    chat: (...args) =>
      driveClaudeChat(
        Bun.spawn([PROGRAM, ...JSON_LINES, ...args], { cwd: folder, env, stdio: ['pipe', 'pipe', 'pipe'] }),
      ),
    open: (prompt) => openTerminal([PROGRAM, prompt], { cwd: folder, env: { ...env, TERM: 'xterm-256color' } }),
    transcript: (sessionId) => {
      const [path] = globSync(join(home, '.claude/projects/*', `${sessionId}.jsonl`))
      if (path === undefined) throw new Error(`There is no transcript of ${sessionId}.`)
      return path
    },
    sideCalls: trap.calls,
    [Symbol.dispose]() {
      trap.stop()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

function openTerminal(command: string[], options: { cwd: string; env: Record<string, string> }): ClaudeTerminal {
  const decoder = new TextDecoder()
  let output = ''
  const terminal = new Bun.Terminal({
    cols: 120,
    rows: 40,
    data: (_, bytes) => {
      output += decoder.decode(bytes, { stream: true })
    },
  })
  const child = Bun.spawn(command, { ...options, terminal })
  return {
    output: () => output,
    press: (key) => terminal.write(key),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
      terminal.close()
    },
  }
}
