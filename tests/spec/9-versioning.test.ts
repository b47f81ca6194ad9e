/** Spec §9, versioning: two families, and nothing to negotiate. */
import { describe, expect, test } from 'bun:test'
import { codexBody, testApp } from '../support/app.ts'

describe('§9 route families', () => {
  test('there is no other version of them', async () => {
    const { ask } = await testApp({ accounts: 0 })
    for (const path of ['/v2/responses', '/v1beta/models', '/backend-api/codex/v2/responses', '/responses'])
      expect([path, (await ask(`POST ${path}`, { json: {} })).status]).toEqual([path, 404])
  })

  test('no version header is required, and none changes the response', async () => {
    const { ask } = await testApp()
    const versions: Record<string, string>[] = [
      {},
      { 'openai-version': '2020-10-01' },
      { 'x-api-version': '99' },
      { version: '0.1.0' },
    ]
    for (const headers of versions) {
      const response = await ask('POST /backend-api/codex/responses', { json: codexBody(), headers })
      expect(response.status).toBe(200)
      await response.text()
    }
  })
})

describe('§9 cookies of earlier releases', () => {
  test('are ignored: they give no access and prevent none', async () => {
    const { ask } = await testApp({ accounts: 0 })
    const headers = { cookie: 'session=gAAAAABm-old-format; codex_lb_session=1' }
    expect((await ask('GET /api/settings', { headers })).status).toBe(200)
    expect((await ask('GET /api/settings', { headers, peer: '203.0.113.9' })).status).toBe(401)
  })
})
