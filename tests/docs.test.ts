/** The user guides stay short enough to read; the page for users of other tools is read once, and counted by itself. */
import { expect, test } from 'bun:test'

const GUIDES = ['README.md', 'docs/clients.md', 'docs/operating.md', 'docs/reverse-proxies.md', 'docs/security.md']
const MAX_WORDS = 8500

test('the guides together have at most 8,500 words, as `wc -w` counts', async () => {
  const counts = await Promise.all(
    GUIDES.map(async (file) => (await Bun.file(file).text()).split(/\s+/).filter(Boolean).length),
  )
  expect(counts.every((count) => count > 500)).toBe(true)
  expect(counts.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(MAX_WORDS)
})

test('the page for users of codex-lb has at most 1,000 words', async () => {
  const words = (await Bun.file('docs/codex-lb.md').text()).split(/\s+/).filter(Boolean)
  expect(words.length).toBeLessThanOrEqual(1000)
})
