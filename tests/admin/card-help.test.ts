/** The `?` beside card titles: on every page, two sentences, and a link that leads somewhere. */
import { expect, test } from 'bun:test'
import { HELP } from '../../views/help.ts'
import { openPage, PAGE_PATHS, sharedHouse } from '../support/house.ts'

const HEAD = /<header class="card-head"><h2[^>]*>(.*?)<\/h2>(<button class="help"[^>]*popovertarget="([^"]*)")?/gs

/** Tabs and states that are pages of their own. */
const MORE_PATHS = ['routing', 'events', 'credentials'].map((tab) => `/accounts/:id?tab=${tab}`)

test.each([...PAGE_PATHS, ...MORE_PATHS].filter((path) => !path.startsWith('/docs')))(
  'every card on %s has help',
  async (path) => {
    const html = await openPage(await sharedHouse(), path)
    for (const [, title, help, id] of html.matchAll(HEAD)) {
      expect([title, help !== undefined]).toEqual([title, true])
      expect(html).toMatch(new RegExp(`<div class="help-text" id="${id}" popover="auto">[^<]+ <a href="/docs/`))
    }
  },
)

test('each help text is two sentences', () => {
  for (const [id, help] of Object.entries(HELP))
    expect([id, help?.says.split(/(?<=[.]) (?=[A-Z])/).length]).toEqual([id, 2])
})

test('each link leads to a section of a guide', async () => {
  const { admin } = await sharedHouse()
  for (const more of new Set(Object.values(HELP).map((help) => help?.more ?? ''))) {
    const [guide, part] = more.split('#')
    const page = await admin.ask(`GET /docs/${guide}`, { headers: { accept: 'text/html' } })
    expect([more, page.status, part === undefined || (await page.text()).includes(`id="${part}"`)]).toEqual([
      more,
      200,
      true,
    ])
  }
})
