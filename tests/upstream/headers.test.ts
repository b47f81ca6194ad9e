/** Which client headers are sent upstream, and what each account adds. */
import { describe, expect, test } from 'bun:test'
import { VERSION } from '../../src/boot/version.ts'
import { accountTag, forwardable, toClientHeaders, upstreamHeaders } from '../../src/upstream/headers.ts'

const account = { id: 'acc_a', chatgptAccountId: 'workspace-a', accessToken: 'token-a' }
const sent = (headers: Record<string, string>, to = account) =>
  upstreamHeaders(forwardable(new Headers(headers)), to, { accept: 'text/event-stream' })

describe('the headers sent upstream', () => {
  test('are those on the list, and nothing else', () => {
    const ours = { originator: 'codex_exec', 'session-id': 's', 'x-codex-window-id': 'w', 'user-agent': 'codex/1' }
    const theirs = {
      authorization: 'Bearer sk-clb-secret',
      cookie: 'session=1',
      forwarded: 'for=192.0.2.1',
      host: 'sluice.test',
      'chatgpt-account-id': 'another',
      'x-codex-lb-required-capability': 'trusted_cyber',
      'x-forwarded-for': '192.0.2.1',
    }
    expect(sent({ ...ours, ...theirs })).toEqual({
      ...ours,
      accept: 'text/event-stream',
      'accept-encoding': 'identity',
      authorization: 'Bearer token-a',
      'chatgpt-account-id': 'workspace-a',
    })
  })

  test('are none that `Connection` names', () => {
    const names = Object.keys(sent({ connection: 'close, Session-Id', 'session-id': 's', 'thread-id': 't' }))
    expect(names).toContain('thread-id')
    expect(names).not.toContain('session-id')
  })

  test('name Sluice for a client without a user agent', () => {
    expect(sent({})).toMatchObject({ 'user-agent': `sluice/${VERSION}` })
    expect(sent({ 'user-agent': '' })).toMatchObject({ 'user-agent': `sluice/${VERSION}` })
  })

  test('are never empty', () => expect(sent({ session_id: '' })).not.toHaveProperty('session_id'))
})

describe('the turn state', () => {
  const answered = new Headers({ 'x-codex-turn-state': 'opaque', 'x-internal': 'no', 'x-reasoning-included': 'true' })
  const told = toClientHeaders(answered, account.id)

  test('is tagged for the client, who gets nothing else of that response except its reasoning header', () =>
    expect(told).toEqual({
      'x-codex-turn-state': `${accountTag(account.id)}.opaque`,
      'x-reasoning-included': 'true',
    }))

  test('is returned unchanged to the account that issued it, and to no other', () => {
    expect(sent(told)).toMatchObject({ 'x-codex-turn-state': 'opaque' })
    expect(sent(told, { ...account, id: 'acc_b' })).not.toHaveProperty('x-codex-turn-state')
    expect(sent({ 'x-codex-turn-state': 'made up' })).not.toHaveProperty('x-codex-turn-state')
  })

  test('over 8 KiB is passed on in neither direction, and one of exactly that is', () => {
    const largest = 'x'.repeat(8192)
    const told = toClientHeaders(new Headers({ 'x-codex-turn-state': largest }), account.id)
    expect(sent(told)).toMatchObject({ 'x-codex-turn-state': largest })
    const tag = accountTag(account.id)
    expect(sent({ 'x-codex-turn-state': `${tag}.${largest}x` })).not.toHaveProperty('x-codex-turn-state')
    const tooLong = { 'x-codex-turn-state': `${largest}x`, 'x-reasoning-included': 'x'.repeat(60_000) }
    expect(toClientHeaders(new Headers(tooLong), account.id)).toEqual({})
  })
})
