/** The first five minutes: follows README.md literally, from a clone to an answer in the real Codex CLI. */
import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { CHROMIUM, ensureProgram } from '../../scripts/programs.ts'
import { getTexts, launchBrowser } from '../browser/browser.ts'
import { getCodeBlocks } from '../support/fenced.ts'
import { freePort } from '../support/free-port.ts'
import { createUpstream } from '../support/upstream/app.ts'
import { startTrap } from './support/trap.ts'

setDefaultTimeout(180_000)

const ROOT = resolve(import.meta.dir, '../..')
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')
const [starting = '', , asking = ''] = getCodeBlocks('README.md', 'Start', 'sh')
const [byTerminal = ''] = getCodeBlocks('README.md', 'Without a browser', 'sh')
const [config = ''] = getCodeBlocks('README.md', 'Connect a client', 'toml')
/** The names of buttons and pages in the text. */
const [setPassword = '', addAccount = '', createKey = '', connect = ''] = boldIn(README, '## Start')

const PASSWORD = 'correct horse battery'
const ANSWER = 'Hello from ada@example.test'

/** With `SLUICE_COLD=true` the machine has no Bun and no package yet, and everything comes over the network. */
const IS_COLD = process.env.SLUICE_COLD === 'true'
const CACHES = {
  BUN_INSTALL_CACHE_DIR: process.env.BUN_INSTALL_CACHE_DIR ?? join(homedir(), '.bun/install/cache'),
  npm_config_cache: process.env.npm_config_cache ?? join(homedir(), '.npm'),
}

const chromium = await ensureProgram(CHROMIUM)
if (chromium === undefined) console.log('note: the first five minutes are NOT RUN: that takes Chromium')

describe.skipIf(chromium === undefined && process.env.CI !== 'true')('a user who follows the README', () => {
  const upstream = createUpstream()
  const standIn = upstream.listen()
  const trap = startTrap()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-first-'))
  const account = upstream.addAccount({ email: 'ada@example.test' })

  afterAll(async () => {
    trap.stop()
    await standIn.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** A home folder in which the Codex CLI was signed in once, and nothing else happened. */
  const person = (name: string): Person => {
    const home = join(folder, name)
    mkdirSync(join(home, '.codex'), { recursive: true })
    writeFileSync(join(home, '.codex', 'auth.json'), account.authJson())
    const port = freePort()
    return {
      home,
      port,
      here: (text) => text.replaceAll('127.0.0.1:2455', `127.0.0.1:${port}`),
      env: {
        PATH: [join(import.meta.dir, 'node_modules/.bin'), ...foldersOnPath()].join(delimiter),
        HOME: home,
        ...(IS_COLD ? {} : CACHES),
        PORT: String(port),
        CODEX_LB_UPSTREAM_BASE_URL: `${standIn.url}/backend-api`,
        CODEX_LB_AUTH_BASE_URL: standIn.url,
      },
    }
  }

  /** The CLI itself may connect only to Sluice. */
  const codex = (who: Person, exported: string) =>
    shell(`${exported}\n${asking}`, who.home, {
      ...who.env,
      HTTP_PROXY: trap.url,
      HTTPS_PROXY: trap.url,
      NO_PROXY: '127.0.0.1,localhost',
    }).ended

  test('gets a response through the dashboard', async () => {
    const startedNs = Bun.nanoseconds()
    const who = person('first')
    await using _server = await started(`git clone ${ROOT} sluice\ncd sluice\n${starting}`, folder, who)
    const [text = '', exported = ''] = await throughTheBrowser(who)
    writeFileSync(join(who.home, '.codex', 'config.toml'), text)
    const { exitCode, output } = await codex(who, exported)
    expect([exitCode, output]).toEqual([0, expect.stringContaining(ANSWER)])
    const seconds = ((Bun.nanoseconds() - startedNs) / 1e9).toFixed(1)
    const from = IS_COLD
      ? 'with nothing on the machine but git and Node'
      : "with Bun and packages from this machine's caches"
    console.log(`note: from the clone to the first answer in the Codex CLI: ${seconds} s, ${from}`)
  })

  /** In the clone of the first. */
  test('gets a response without a browser', async () => {
    const who = person('second')
    const clone = join(folder, 'sluice')
    const made = await shell(byTerminal, clone, who.env, `${PASSWORD}\n`).ended
    expect(made).toMatchObject({ exitCode: 0 })
    const [key = ''] = /^sk-clb-\S+/m.exec(made.output) ?? []
    await using _server = await started(starting, clone, who)
    writeFileSync(join(who.home, '.codex', 'config.toml'), who.here(config))
    const { exitCode, output } = await codex(who, `export SLUICE_API_KEY=${key}`)
    expect([exitCode, output]).toEqual([0, expect.stringContaining(ANSWER)])
  })

  test('causes no suspicious upstream requests', () => {
    expect(upstream.oddities).toEqual([])
  })
})

interface Person {
  home: string
  env: Record<string, string>
  port: number
  /** With the addresses that are in use in this test. */
  here(text: string): string
}

/** The three steps of the list, as far as the first text to paste and the line for the shell. */
const throughTheBrowser = async (who: Person): Promise<string[]> => {
  await using browser = await launchBrowser()
  const [address = ''] = /http:\S+\/dashboard/.exec(README) ?? []
  await using visit = await browser.visit(who.here(address))
  const { page } = visit
  const press = (name: string) => page.getByRole('button', { name }).click()
  const isDone = (step: string) => page.locator('.checklist > ol > .step-done', { hasText: step }).waitFor()
  const follow = (name: string) => page.getByRole('link', { name }).first().click()

  await follow(setPassword)
  await page.fill('[name=password]', PASSWORD)
  await press('Set password')
  await page.waitForURL('**/dashboard')
  await isDone(setPassword)

  await follow(addAccount)
  await page.getByRole('link', { name: 'File', exact: true }).click()
  await page.setInputFiles('[name=auth_json]', join(who.home, '.codex', 'auth.json'))
  await page.getByRole('button', { name: 'Import', exact: true }).click()
  await follow('Done')
  await follow('Overview')
  await isDone('Add an account')

  await follow(createKey)
  await page.fill('[name=name]', 'laptop')
  await press('Create key')
  await page.getByRole('heading', { name: connect }).waitFor()
  const texts = await getTexts(page.locator('[data-client=codex] code'))
  expect(visit.problems).toEqual([])
  return texts.filter((text) => text.includes('\n') || text.startsWith('export '))
}

/** Runs the commands of the text, the last of which is `npm start`, until the server listens. */
const started = async (text: string, cwd: string, { home, port, env }: Person): Promise<AsyncDisposable> => {
  const run = shell(text, cwd, env)
  await Promise.race([
    run.says(`listening on http://127.0.0.1:${port}`),
    run.ended.then(({ exitCode, output }) => Promise.reject(new Error(`It ended with ${exitCode}.\n${output}`))),
  ])
  return {
    async [Symbol.asyncDispose]() {
      // npm and a shell are between us and the server; they end when it does.
      process.kill(Number(readFileSync(join(home, '.sluice', 'sluice.pid'), 'utf8')), 'SIGTERM')
      await run.ended
    },
  }
}

interface Shell {
  /** Resolves when this was printed, and never when it is not. */
  says(words: string): Promise<void>
  ended: Promise<{ exitCode: number; output: string }>
}

/** As typed into a terminal, but that it stops at the first command that fails. */
const shell = (text: string, cwd: string, env: Record<string, string>, stdin = ''): Shell => {
  const child = Bun.spawn(['sh', '-e', '-c', `{ ${text}\n} 2>&1`], {
    cwd,
    env,
    stdio: [new Blob([stdin]), 'pipe', 'inherit'],
  })
  let output = ''
  let changed = Promise.withResolvers<void>()
  const read = async () => {
    const decoder = new TextDecoder()
    for await (const chunk of child.stdout) {
      output += decoder.decode(chunk, { stream: true })
      changed.resolve()
      changed = Promise.withResolvers()
    }
    return { exitCode: await child.exited, output }
  }
  return {
    async says(words) {
      while (!output.includes(words)) await changed.promise
    },
    ended: read(),
  }
}

/** The lines of the section that begins with this line, in order. */
function boldIn(markdown: string, start: string): string[] {
  const section = markdown.slice(markdown.indexOf(`${start}\n`) + start.length).split('\n## ')[0] ?? ''
  return [...section.matchAll(/\*\*(.+?)\*\*/g)].map(([, words = '']) => words)
}

/** The folders of PATH; on a machine that is taken to be new without those that have Bun in them. */
function foldersOnPath(): string[] {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return IS_COLD ? folders.filter((folder) => !existsSync(join(folder, 'bun'))) : folders
}
