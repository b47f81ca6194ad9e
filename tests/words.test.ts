/**
 * How Sluice talks: plain English with one word for one thing. Covers what people read in the interface, the command line,
 * errors, log lines and documentation, and the comments of the source.
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { CODES, type Code } from '../src/errors.ts'
import { getComments, getProse, getStrings } from './support/wording.ts'

const ROOT = join(import.meta.dir, '..')

/** Area → the files in it. */
const AREAS: Record<string, readonly string[]> = {
  guides: [
    'README.md',
    'CHANGELOG.md',
    'docs/{alerts,claude-code,clients,operating,codex-lb,postgresql,reverse-proxies,scaling,security}.md',
  ],
  errors: ['src/errors.ts'],
  'proxy and sign-in': ['src/{http,auth,proxy}/**/*.{ts,tsx}'],
  pages: ['views/**/*.{ts,tsx,js}', 'src/admin/**/*.{ts,tsx}', 'src/model/**/*.ts', 'src/settings/**/*.ts'],
  'command line': ['src/cli/**/*.ts', 'src/ops/**/*.ts'],
  'API reference': ['src/api-docs/**/*.ts'],
  'the rest': ['src/*.ts', 'src/{boot,jobs,lib,routes,threads,upstream}/**/*.ts'],
}

/** Phrase → its replacement. */
const BANNED: readonly [phrase: RegExp, instead: string][] = [
  [/\bnobody\b/i, 'name who acts, or "no one"'],
  [/\bsomebody\b/i, '"someone", "a user", "another user"'],
  [/\bwhoever\b/i, '"everyone who", "anyone who"'],
  [/\banew\b/i, '"again"'],
  [/\bfor ever\b/i, '"forever", "never expires"'],
  [/\bat once\b/i, '"immediately"'],
  [/\bmeanwhile\b/i, '"until then", "for now"'],
  [/\blet go of\b/i, '"deleted", "expired"'],
  [/\basked (?:first|last)\b/i, '"used first", "last resort"'],
  [/\b(?:is|are|was|were) (?:told|believed|looked at)\b/i, 'say who does what'],
  [/\bstands (?:there|here)\b/i, '"is"'],
  [/\btaken (?:back|in)\b/i, '"revoked", "imported"'],
  [/\bpassed over\b/i, '"skipped"'],
  [/\bleft by the client\b/i, '"cancelled by the client"'],
  [/\b(?:is|are|was|were|be|been) refused\b/i, '"rejected"'],
  [/\bthe service\b(?! tier)/i, '"Sluice" or "ChatGPT"'],
  [/\b(?:a|the|this|each|every|per|running|ended) turns?\b(?! (?:on|off))/i, '"request"'],
  [/\bturns? under way\b/i, '"running request"'],
  [/\bbetween turns\b/i, '"between requests"'],
  [/\bmade (?:by|with|a moment ago)\b/i, '"created"'],
  [/\b(?:backup|folder|copy|file|key) was made\b/i, '"created"'],
  [/\blet (?:in|on)\b/i, '"allowed"'],
  [/\b(?:kept|keep|held) back\b/i, '"last resort"'],
  [/\bcallers?\b/i, '"client"'],
  [/\bseats?\b/i, '"account"'],
  [/\banyone who may\b/i, '"users with the permission"'],
  [/\bin all its life\b/i, '"all time"'],
  [/\b(?:is|are|not|no) eligible\b|\bineligible\b/i, '"available", "not available"'],
  [/\bsealed\b/i, '"encrypted"'],
  [/\brefuses\b/i, '"rejects"'],
  [/\brenewal\b/i, '"refresh"'],
  [/\bin its place\b/i, 'name both things'],
  [/\btaken (?:out|away)\b/i, '"removed"'],
  [/\bperson.s account\b/i, '"user"'],
  [/\bto (?:somebody|anybody)\b|\banybody\b/i, '"anyone"'],
  [/\b(?:at|by) (?:this pace|itself|themselves)\b/i, '"automatically", "on pace"'],
  [/\bCODEX_LB_[A-Z]/, '"SLUICE_…"'],
  [/\b(?:un)?authoris|\borganis|\brecognis|\bserialis|\bsynchronis|\blicence/i, 'American spelling'],
]

const filesIn = (patterns: readonly string[]): string[] =>
  patterns.flatMap((pattern) => [...new Glob(pattern).scanSync(ROOT)]).toSorted()

const getText = (file: string) => {
  const text = readFileSync(join(ROOT, file), 'utf8')
  return file.endsWith('.md') ? getProse(text) : getStrings(text, { isJsx: file.endsWith('.tsx') })
}

/** `file:line: phrase (what to write)` for each banned phrase in a file. */
const findingsIn = (file: string): string[] =>
  getText(file).flatMap(({ number, text }) =>
    BANNED.flatMap(([phrase, instead]) => {
      const found = phrase.exec(text)?.[0]
      return found === undefined ? [] : [`${file}:${number}: "${found}" → ${instead}`]
    }),
  )

describe('banned phrases', () => {
  test.each(Object.entries(AREAS))('%s', (_area, patterns) => {
    const files = filesIn(patterns)
    expect(files.length).toBeGreaterThan(0)
    expect(files.flatMap(findingsIn)).toEqual([])
  })
})

/**
 * Phrases that no comment needs, and sources that a reader cannot open. Other banned words have a technical meaning
 * there, such as "turn" and "caller".
 */
const BANNED_IN_COMMENTS =
  /\b(?:nobody|somebody|anybody|whoever|anew|for ever|meanwhile|let go of|under way|passed over|left by the client)\b|\b(?:is|are|was|were) (?:told|believed|looked at)\b|\b(?:is|are|was|were|be|been) refused\b|\basked (?:first|last)\b|\bstands (?:there|here)\b|^\W*Of (?!course)[A-Za-z]|\(measured\)|\b(?:client protocol|proxy.surface|domain.logic|dashboard API|interface) §/i

test('comments have none of the phrases that only this repository used', () => {
  const found = filesIn(['{src,views,db,scripts,bench}/**/*.{ts,tsx,js,mjs}']).flatMap((file) =>
    getComments(readFileSync(join(ROOT, file), 'utf8')).flatMap(({ number, text }) => {
      const phrase = BANNED_IN_COMMENTS.exec(text)?.[0]
      return phrase === undefined ? [] : [`${file}:${number}: "${phrase}"`]
    }),
  )
  expect(found).toEqual([])
})

/** Where users and their sign-in are written about, so that "account" would be the wrong word. */
const ABOUT_USERS = [
  'views/people/**/*.tsx',
  'views/me/**/*.tsx',
  'views/{me,sign-in,invite,two-factor,confirm}.tsx',
  'src/admin/{people,auth}/**/*.ts',
  'src/auth/**/*.ts',
]

/** "My account" is the name of a page, and a ChatGPT account can be named anywhere. */
const ACCOUNT = /(?<!\bMy )(?<!\bChatGPT )\baccounts?\b/i

const usersCalledAccounts = (file: string): string[] =>
  getText(file).flatMap(({ number, text }) => (ACCOUNT.test(text) ? [`${file}:${number}: ${text.trim()}`] : []))

/** Errors about accounts of the pool. */
const ABOUT_THE_POOL = new Set<Code>([
  'account_outside_pool',
  'no_security_work_authorized_accounts',
  'invalid_auth_json',
  'account_not_found',
  'account_state_transition_invalid',
  'account_not_probable',
  'account_not_reset_credit_applicable',
  'warmup_ineligible',
  'window_start_refused',
  'no_available_reset_credit',
  'reset_credit_redeem_in_progress',
  'account_stream_cap',
  'no_accounts',
  'no_plan_support_for_model',
  'continuity_owner_unavailable',
  'continuity_owner_conflict',
  'file_owner_unavailable',
  'upstream_auth_failed',
  'egress_unavailable',
  'proxy_pool_in_use',
  'invalid_account_ids',
  'invalid_model',
  'sticky_session_not_found',
])

describe('an account is a ChatGPT account, and someone who signs in is a user', () => {
  test('in errors', () => {
    const wrong = Object.entries(CODES).filter(([code]) => !ABOUT_THE_POOL.has(code as Code)) // as: the keys of CODES
    expect(wrong.flatMap(([code, [, message]]) => (ACCOUNT.test(message) ? [`${code}: ${message}`] : []))).toEqual([])
  })

  test('on the pages about users', () => {
    const files = filesIn(ABOUT_USERS)
    expect(files.length).toBeGreaterThan(0)
    expect(files.flatMap(usersCalledAccounts)).toEqual([])
  })
})

describe('the text that is checked', () => {
  test('in source: strings, templates and JSX, but no comments and no single words', () => {
    const source = [
      "// nobody's comment",
      "const a = 'first text' // it's \"here\"",
      'const b = `second $' + '{nobody} text`',
      "const c = 'invalid_code'",
      '<p>Third text <b>and fourth</b></p>',
    ].join('\n')
    expect(getStrings(source, { isJsx: true }).map(({ number, text }) => [number, text.trim()])).toEqual([
      [2, 'first text'],
      [3, 'second … text'],
      [5, 'Third text'],
      [5, 'and fourth'],
    ])
  })

  test('in comments, over several lines', () => {
    const source = ['/**', ' * One', ' * two', ' */', "const a = '// no' // three"].join('\n')
    expect(getComments(source).map(({ number, text }) => [number, text.trim()])).toEqual([
      [1, '/** One two'],
      [5, '// three'],
    ])
  })

  test('in Markdown: prose without code and link targets', () => {
    const text = ['One `nobody` [two](nobody.md)', '```sh', 'nobody', '```', 'three'].join('\n')
    expect(getProse(text)).toEqual([
      { number: 1, text: 'One  [two]' },
      { number: 5, text: 'three' },
    ])
  })
})
