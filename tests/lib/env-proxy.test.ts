/** The proxy of the environment: order of variables, exceptions, and no accidental direct connection. */
import { describe, expect, test } from 'bun:test'
import { chooseProxy, type Environment } from '../../src/lib/env-proxy.ts'

const ALL: Environment = {
  wss_proxy: 'http://wss:1',
  ws_proxy: 'http://ws:1',
  socks_proxy: 'socks5://socks:1',
  https_proxy: 'http://https:1',
  http_proxy: 'http://http:1',
  all_proxy: 'http://all:1',
}

test.each([
  ['https://a.example/', ['https_proxy', 'all_proxy', 'socks_proxy']],
  ['http://a.example/', ['http_proxy', 'all_proxy', 'socks_proxy']],
  ['wss://a.example/', ['wss_proxy', 'socks_proxy', 'https_proxy', 'all_proxy']],
  ['ws://a.example/', ['ws_proxy', 'socks_proxy', 'https_proxy', 'http_proxy', 'all_proxy']],
])('%s uses %p in order, in either case', (target, order) => {
  for (const upper of [false, true]) {
    const env = Object.fromEntries(Object.entries(ALL).map(([name, url]) => [upper ? name.toUpperCase() : name, url]))
    for (const expected of order) {
      const variable = upper ? expected.toUpperCase() : expected
      expect(chooseProxy(target, env)).toMatchObject({ variable })
      delete env[variable]
    }
    expect(chooseProxy(target, env)).toEqual({ kind: 'direct' })
  }
})

test('lower case takes precedence, and an empty variable counts as unset', () => {
  const env = { HTTPS_PROXY: 'http://upper:1', https_proxy: 'http://lower:1' }
  expect(chooseProxy('https://a.example', env)).toMatchObject({ url: 'http://lower:1' })
  expect(chooseProxy('https://a.example', { ...env, https_proxy: ' ' })).toMatchObject({ url: 'http://upper:1' })
})

test.each([
  ['https_proxy', 'http://u:p%40@h:8080/', { kind: 'proxy', url: 'http://u:p%40@h:8080' }],
  ['https_proxy', 'https://h', { kind: 'proxy', url: 'https://h' }],
  ['https_proxy', 'h:8080', { kind: 'proxy', url: 'http://h:8080' }],
  ['https_proxy', '[::1]:8080', { kind: 'proxy', url: 'http://[::1]:8080' }],
  ['https_proxy', 'http://:p@h:8080', { kind: 'proxy', url: 'http://:p@h:8080' }],
  ['all_proxy', 'socks5://u:p@h:1080', { kind: 'socks', url: 'socks5://u:p@h:1080' }],
  ['all_proxy', 'SOCKS5H://h:1080', { kind: 'socks', url: 'socks5h://h:1080' }],
  ['all_proxy', 'socks4a://h:1080', { kind: 'socks', url: 'socks4a://h:1080' }],
  ['all_proxy', 'socks://h:1080', { kind: 'socks', url: 'socks5h://h:1080' }],
  ['socks_proxy', 'h:1080', { kind: 'socks', url: 'socks5h://h:1080' }],
  ['socks_proxy', 'http://h:1080', { kind: 'socks', url: 'socks5h://h:1080' }],
])('%s=%s is %p', (variable, value, expected) => {
  expect(chooseProxy('wss://a.example', { [variable]: value })).toEqual({ ...expected, variable } as never)
})

test.each(['ftp://h:1', 'http://', 'http://secret@:1', 'h:99999', 'a b', 'quic://h:1'])(
  'https_proxy=%s is invalid, not direct',
  (value) => {
    const choice = chooseProxy('https://a.example', { https_proxy: value, all_proxy: 'http://all:1' })
    expect(choice).toMatchObject({ kind: 'invalid', variable: 'https_proxy' })
    expect(JSON.stringify(choice)).not.toContain('secret')
  },
)

test.each([
  ['http://secret%zz@h:1', 'its user name or password is not percent-encoded'],
  ['socks5://u:secret%ff@h:1', 'its user name or password is not percent-encoded'],
  [`socks5://u:secret${'é'.repeat(128)}@h:1`, 'its user name or password is longer than 255 bytes'],
])('credentials that cannot be sent are reported at the start: %s', (value, why) => {
  expect(chooseProxy('wss://a.example', { all_proxy: value })).toEqual({ kind: 'invalid', variable: 'all_proxy', why })
})

test('a target with another scheme is a programming error', () => {
  expect(() => chooseProxy('ftp://a.example', ALL)).toThrow(TypeError)
})

describe('NO_PROXY', () => {
  const isDirect = (target: string, list: string) =>
    chooseProxy(target, { ALL_PROXY: 'http://p:1', NO_PROXY: list }).kind === 'direct'

  test.each([
    ['https://a.example', '*'],
    ['https://a.example', 'a.example'],
    ['https://A.Example.', 'a.EXAMPLE.'],
    ['https://x.a.example', 'a.example'],
    ['https://x.a.example', '.a.example'],
    ['https://x.a.example', '*.a.example'],
    ['https://a.example', 'other, a.example'],
    ['https://a.example', 'other a.example'],
    ['https://a.example', 'a.example:443'],
    ['wss://a.example:8443', 'a.example:8443'],
    ['http://localhost:1', 'localhost'],
    ['http://127.0.0.1', '127.0.0.1'],
    ['http://127.9.9.9', '127.0.0.0/8'],
    ['http://[::1]', '::1'],
    ['http://[::1]:80', '[::1]:80'],
    ['http://[2001:db8::5]', '2001:DB8::/32'],
  ])('%s is direct with %s', (target, list) => expect(isDirect(target, list)).toBe(true))

  test.each([
    ['https://a.example', ''],
    ['https://a.example', ','],
    ['https://a.example', '.'],
    ['https://a.example', '.a.example'],
    ['https://nota.example', 'a.example'],
    ['https://a.example.evil', 'a.example'],
    ['https://a.example', 'a.example:80'],
    ['https://a.example:8443', 'a.example:443'],
    ['http://localhost', 'other'],
    ['http://127.0.0.1', 'localhost'],
    ['http://127.0.0.1', '0.0.1'],
    ['http://10.0.0.1', '10.0.0.2/32'],
    ['http://a.example', '0.0.0.0/0'],
  ])('%s is not direct with %s', (target, list) => expect(isDirect(target, list)).toBe(false))
})
