/** Clients under the names that people know, wherever a request is shown. */
import { expect, test } from 'bun:test'
import { programName } from '../../src/lib/user-agent.ts'
import { getAnswer, testApp } from '../support/app.ts'
import { people } from '../support/people.ts'

const HTML = { headers: { accept: 'text/html' } }
const json = { model: 'claude-opus-5-5', max_tokens: 64, messages: [{ role: 'user', content: 'hello' }] }

test.each([
  ['claude-cli/2.1.332 (external, cli)', 'claude-cli', 'Claude Code'],
  ['Anthropic/JS 1.14.0', 'Anthropic', 'Anthropic SDK'],
  ['OpenAI/Python 2.3.0', 'OpenAI', 'OpenAI SDK'],
  ['my-agent/1.0', 'my-agent', 'my-agent'],
])('%s is named in the log, its export and reports', async (userAgent, group, name) => {
  const app = await testApp()
  const admin = await people(app).as('admin')
  await getAnswer(app, 'POST /v1/messages', { json, headers: { 'user-agent': userAgent } })
  await app.rows()
  const { requests } = await (await admin.ask('GET /api/request-logs')).json()
  const [request] = requests
  expect(request).toMatchObject({ useragentGroup: group, clientName: name, route: '/v1/messages' })
  const [head = '', row = ''] = (await (await admin.ask('GET /api/request-logs/export?format=csv')).text()).split(
    '\r\n',
  )
  const names = head.split(',')
  expect(names.slice(-4)).toEqual(['route', 'client', 'client_ip', 'client_name'])
  expect(row).toEndWith(`,${name}`)
  expect(row).toContain(',/v1/messages,')
  expect(await (await admin.ask(`GET /logs/${request.id}`, HTML)).text()).toContain(name)
  expect(await (await admin.ask('GET /logs?columns=tool&columns=route', HTML)).text()).toContain(`>${name}<`)
  const { byClient } = await (await admin.ask('GET /api/reports')).json()
  expect(byClient).toMatchObject([{ id: group, name }])
  const report = await (await admin.ask('GET /reports?stack=client&measure=requests', HTML)).text()
  expect(report).toContain(`<option value="${group}">${name}</option>`)
  const narrowed = await (await admin.ask(`GET /api/reports?client=${group}`)).json()
  expect(narrowed.summary.requests).toBe(1)
})

test('a member of Object.prototype is not a known program', () => {
  expect(programName('constructor')).toBe('constructor')
})
