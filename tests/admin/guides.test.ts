/** `/docs`: the user guides as pages, with valid links. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderMarkdown } from '../../src/lib/markdown.ts'
import { SETTING_NAMES } from '../../src/settings/schema.ts'
import { testApp } from '../support/app.ts'
import { people, REMOTE } from '../support/people.ts'

const HTML = { headers: { accept: 'text/html' } }
const GUIDES = [
  'clients',
  'claude-code',
  'operating',
  'codex-lb',
  'alerts',
  'reverse-proxies',
  'scaling',
  'postgresql',
  'security',
]

const reader = async () => people(await testApp({ accounts: 0 })).as('viewer')
const pageAt = async (path: string): Promise<string> => (await (await reader()).ask(`GET ${path}`, HTML)).text()
const getIds = (html: string): string[] => [...html.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)
const getLinks = (html: string): string[] => [...html.matchAll(/ href="([^"]+)"/g)].map(([, href = '']) => href)

describe('the guides', () => {
  test('are listed at /docs, with the API reference', async () => {
    const links = getLinks(await pageAt('/docs'))
    for (const path of [...GUIDES.map((slug) => `/docs/${slug}`), '/docs/api']) expect(links).toContain(path)
  })

  test.each(GUIDES)('%s has its text, and every link leads to an existing page and heading', async (slug) => {
    const html = await pageAt(`/docs/${slug}`)
    const [, article = ''] = /<article class="guide">(.*)<\/article>/s.exec(html) ?? []
    const source = readFileSync(join(import.meta.dir, '../../docs', `${slug}.md`), 'utf8')
    expect(article.match(/<h2 /g)).toHaveLength(source.match(/^## /gm)?.length ?? 0)
    const dead = []
    for (const link of getLinks(article)) {
      if (link.startsWith('https://')) continue
      const [path = '', id] = link.split('#')
      const target = path === '' ? html : await pageAt(path)
      const isThere = path === '' || path === '/docs/api' || GUIDES.includes(path.replace('/docs/', ''))
      if (!isThere || (id !== undefined && !getIds(target).includes(id))) dead.push(link)
    }
    expect(dead).toEqual([])
    expect(html.length).toBeLessThan(40_000)
  })

  test('require a sign-in, like every other page', async () => {
    const app = await testApp({ accounts: 0 })
    const { add, browser } = people(app)
    await add({ role: 'admin' })
    const response = await browser(REMOTE).ask('GET /docs/security', HTML)
    expect([response.status, response.headers.get('location')]).toEqual([303, '/login?return=%2Fdocs%2Fsecurity'])
  })

  test('answer 404 when they do not exist', async () => {
    for (const path of ['/docs/decisions', '/docs/..%2Fsecurity', '/docs/toString'])
      expect((await (await reader()).ask(`GET ${path}`, HTML)).status).toBe(404)
  })
})

describe('Markdown', () => {
  const render = (text: string) => renderMarkdown(text, (href) => href)

  test('escapes HTML, and never runs it', () => {
    const { html } = render('# A\n\n<script>alert(1)</script> and `<b>`\n')
    expect(html).not.toContain('<script>')
    expect(html).toContain('<code>&lt;b&gt;</code>')
  })

  test('takes the first heading as the title and lists the sections as plain text', () => {
    expect(render('# The `title`\n\n## One & two\n\n### Below\n\n## Three\n')).toMatchObject({
      title: 'The title',
      sections: [
        { id: 'one-two', title: 'One & two' },
        { id: 'three', title: 'Three' },
      ],
    })
  })

  test('breaks long names in a table after an underscore, and keeps escaped text', () => {
    const { html } = render('| a |\n|---|\n| `LONG_NAME<x>` |\n')
    expect(html).toContain('<code>LONG_<wbr>NAME&lt;x&gt;</code>')
  })

  test('a wide table scrolls on its own, by keyboard too', () => {
    expect(render('| a |\n|---|\n| b |\n').html).toMatch(/<div class="guide-table" tabindex="0"[^>]*>\s*<table>/)
  })
})

test('docs/operating.md lists every setting', async () => {
  const guide = await Bun.file('docs/operating.md').text()
  expect(SETTING_NAMES.filter((name) => !guide.includes(`\`${name}\``))).toEqual([])
})
