/** Valid values of the environment, and that no message repeats a secret. */
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { ConfigError, readConfig, variablesSet, withEnvFile } from '../src/boot/env.ts'

const refusal = (work: () => unknown): string => {
  try {
    work()
  } catch (err) {
    if (err instanceof ConfigError) return err.message
    throw err
  }
  throw new Error('nothing was refused')
}

test('schemas are interpreted, not compiled, for schemas created after this module', () => {
  expect(z.config().jitless).toBeTrue()
})

test('every variable is read with both prefixes, and ours takes precedence', () => {
  expect(readConfig({ SLUICE_LOG_LEVEL: 'debug' }).LOG_LEVEL).toBe('debug')
  expect(readConfig({ CODEX_LB_PUBLIC_URL: 'https://a.test' }).PUBLIC_URL).toBe('https://a.test')
  expect(readConfig({ SLUICE_OAUTH_CALLBACK_PORT: '1', CODEX_LB_OAUTH_CALLBACK_PORT: '2' }).OAUTH_CALLBACK_PORT).toBe(1)
  expect(readConfig({ SLUICE_DATA_DIR: '', CODEX_LB_DATA_DIR: '/old' }).DATA_DIR).toBe('/old')
})

test('a variable set with both prefixes to different values is reported with the value used', () => {
  const { conflicts, METRICS_TOKEN } = readConfig({
    SLUICE_METRICS_TOKEN: 'the-token-that-is-used',
    CODEX_LB_METRICS_TOKEN: 'the-token-that-is-not',
    SLUICE_LOG_FORMAT: 'json',
    CODEX_LB_LOG_FORMAT: 'json',
    CODEX_LB_PUBLIC_URL: '',
    SLUICE_PUBLIC_URL: 'https://a.test',
  })
  expect(METRICS_TOKEN).toBe('the-token-that-is-used')
  expect(conflicts).toEqual([
    'SLUICE_METRICS_TOKEN and CODEX_LB_METRICS_TOKEN are set to different values. SLUICE_METRICS_TOKEN is used; remove CODEX_LB_METRICS_TOKEN.',
  ])
})

test('an invalid value is reported with the name it was given by', () => {
  expect(refusal(() => readConfig({ SLUICE_LOG_LEVEL: 'loud' }))).toStartWith('SLUICE_LOG_LEVEL="loud" cannot be used')
  expect(refusal(() => readConfig({ SLUICE_DASHBOARD_AUTH_MODE: 'trusted_header' }))).toContain(
    'SLUICE_FIREWALL_TRUST_PROXY_HEADERS=true',
  )
})

test('unknown names with both prefixes are reported, except those of other programs', () => {
  const { unknown } = readConfig({
    SLUICE_TYPO: 'x',
    SLUICE_PORT: '1',
    SLUICE_API_KEY: 'sk',
    SLUICE_RUNTIME_IS_SET: '1',
  })
  expect(unknown).toEqual(['SLUICE_TYPO', 'SLUICE_PORT'])
})

test('an unused name is reported, also one that is read without the prefix', () => {
  const { PORT, unknown } = readConfig({ CODEX_LB_PORT: '1', CODEX_LB_HOST: '::1', CODEX_LB_TYPO: 'x', HOST: '::1' })
  expect([PORT, unknown]).toEqual([2455, ['CODEX_LB_PORT', 'CODEX_LB_HOST', 'CODEX_LB_TYPO']])
})

test('an invalid value is reported with its variable', () => {
  expect(refusal(() => readConfig({ CODEX_LB_LOG_LEVEL: 'loud' }))).toContain(
    'CODEX_LB_LOG_LEVEL="loud" cannot be used',
  )
})

test.each([
  ['PORT', ' '],
  ['PORT', '0x10'],
  ['PORT', '-1'],
  ['PORT', '65536'],
  ['CODEX_LB_SHUTDOWN_DRAIN_SECONDS', ' '],
  ['CODEX_LB_SHUTDOWN_DRAIN_SECONDS', '1e3'],
  ['CODEX_LB_UPSTREAM_BASE_URL', 'https://upstream.test/api?key=1'],
  ['CODEX_LB_AUTH_BASE_URL', 'https://auth.test/#top'],
])('%s=%j is rejected, not interpreted as something else', (name, value) => {
  expect(refusal(() => readConfig({ [name]: value }))).toStartWith(`${name}="${value}" cannot be used: `)
})

test('whitespace around a number is ignored', () => {
  const config = readConfig({ PORT: ' 2456 ', CODEX_LB_SHUTDOWN_DRAIN_SECONDS: '0.5' })
  expect([config.PORT, config.SHUTDOWN_DRAIN_SECONDS]).toEqual([2456, 0.5])
})

test('an invalid secret is reported without its value', () => {
  const message = refusal(() => readConfig({ CODEX_LB_DASHBOARD_BOOTSTRAP_TOKEN: 'hunter2' }))
  expect(message).toContain('CODEX_LB_DASHBOARD_BOOTSTRAP_TOKEN')
  expect(message).toContain('at least 16 characters')
  expect(message).not.toContain('hunter2')
})

test('the credentials of an invalid URL are not repeated', () => {
  const message = refusal(() => readConfig({ CODEX_LB_UPSTREAM_BASE_URL: 'ftp://me:hunter2@upstream.example' }))
  expect(message).toContain('upstream.example')
  expect(message).not.toContain('hunter2')
})

test.each(['[not JSON', '[1', 'not an address'])('ranges written as %p are one sentence', (value) => {
  const message = refusal(() => readConfig({ CODEX_LB_PROXY_UNAUTHENTICATED_CLIENT_CIDRS: value }))
  expect(message).toContain('CODEX_LB_PROXY_UNAUTHENTICATED_CLIENT_CIDRS')
})

const inFolder = (work: (dir: string) => void) => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-env-'))
  try {
    work(dir)
  } finally {
    rmSync(dir, { recursive: true })
  }
}

test('the .env of the data folder extends the environment, which takes precedence', () => {
  inFolder((dir) => {
    writeFileSync(join(dir, '.env'), 'PORT=1\nHOST=::1\n')
    const environment = { CODEX_LB_DATA_DIR: dir, PORT: '2' }
    expect(withEnvFile(environment)).toEqual({ ...environment, HOST: '::1' })
  })
})

test('the environment takes precedence over .env with either prefix', () => {
  inFolder((dir) => {
    writeFileSync(
      join(dir, '.env'),
      'SLUICE_LOG_LEVEL=debug\nCODEX_LB_LOG_FORMAT=json\nSLUICE_PUBLIC_URL=https://a.test\n',
    )
    const environment = { CODEX_LB_DATA_DIR: dir, CODEX_LB_LOG_LEVEL: 'warn', SLUICE_LOG_FORMAT: 'text' }
    const config = readConfig(withEnvFile(environment))
    expect([config.LOG_LEVEL, config.LOG_FORMAT, config.PUBLIC_URL]).toEqual(['warn', 'text', 'https://a.test'])
    expect(config.conflicts).toEqual([])
  })
})

test('a missing .env or folder is not an error', () => {
  inFolder((dir) => {
    for (const CODEX_LB_DATA_DIR of [dir, join(dir, 'missing')])
      expect(withEnvFile({ CODEX_LB_DATA_DIR })).toEqual({ CODEX_LB_DATA_DIR })
  })
})

test('an existing .env that cannot be read stops the start', () => {
  inFolder((dir) => {
    mkdirSync(join(dir, '.env'))
    expect(refusal(() => withEnvFile({ CODEX_LB_DATA_DIR: dir }))).toContain(join(dir, '.env'))
  })
})

test.each(['HTTP', 'HTTPS', 'ALL', 'NO', 'WS', 'WSS', 'SOCKS'])('a unit includes %s_PROXY in either case', (kind) => {
  for (const name of [`${kind}_PROXY`, `${kind}_PROXY`.toLowerCase()])
    expect(variablesSet({ [name]: 'x' })).toEqual([{ name, value: 'x', isSecret: false }])
})

test.each(['http://me:pw@proxy.test:3128', 'me:pw@proxy.test:3128'])('a proxy with a login is secret: %s', (value) => {
  expect(variablesSet({ HTTPS_PROXY: value })).toEqual([{ name: 'HTTPS_PROXY', value, isSecret: true }])
})
