/** Credentials in the query of a captured request. */
import { expect, test } from 'bun:test'
import { redactedTarget } from '../../src/model/captures/redact.ts'

test.each(['api-key', 'apikey', 'client_secret', 'password', 'refresh_token', 'access%5Ftoken', '%6Bey'])(
  'a query member %s is removed',
  (name) => {
    expect(redactedTarget(`/v1/x?${name}=hidden&model=gpt`)).not.toContain('hidden')
    expect(redactedTarget(`/v1/x?${name}=hidden&model=gpt`)).toContain('model=gpt')
  },
)

test('an escaped key is removed under any name', () => {
  expect(redactedTarget(`/v1/x?q=sk%2Dclb%2D${'a'.repeat(40)}`)).not.toContain('aaaa')
})
