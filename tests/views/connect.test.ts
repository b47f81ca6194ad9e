/** The tabs of "Connect a client" work without scripts: the style sheet names each of them. */
import { expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { snippets } from '../../views/keys/snippets.ts'

test('every client has a rule that shows its text', async () => {
  const styles = await Bun.file(resolve(import.meta.dir, '../../views/assets/keys.css')).text()
  const ids = snippets({ baseUrl: '', key: '', model: '' }).map(({ id }) => id)
  expect(ids.filter((id) => !styles.includes(`:has([value="${id}"]:checked) [data-client="${id}"]`))).toEqual([])
})

test('docs/claude-code.md has the settings of the tab', async () => {
  const guide = await Bun.file(resolve(import.meta.dir, '../../docs/claude-code.md')).text()
  const all = snippets({ baseUrl: 'http://127.0.0.1:2455', key: 'sk-clb-…', model: 'gpt-5.5' })
  const settings = all.find(({ id }) => id === 'claude-code')?.parts[0]?.text
  expect(guide).toContain(settings ?? '-')
})
