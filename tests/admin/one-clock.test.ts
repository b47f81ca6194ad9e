/** One clock: pages show the viewer's own time; UTC is left to tooltips, exports and the API. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { buildDashboard, type House, openPage, PAGE_PATHS, sharedHouse } from '../support/house.ts'
import { people, problem } from '../support/people.ts'

const HTML = { accept: 'text/html' }
const NEW_YORK = 'zone=America/New_York'

/** Everything a user reads or hears: texts, labels and placeholders, without scripts and tooltips. */
const shownText = (html: string): string => {
  const labels = [...html.matchAll(/ (?:aria-label|placeholder)="([^"]*)"/g)].map(([, label]) => label)
  return [html.replace(/<(script|title)\b.*?<\/\1>/gs, '').replace(/<[^>]*>/g, ' '), ...labels].join(' ')
}

/** Times that are not local: the word UTC, and ISO 8601 as the API writes it. */
const notLocal = (html: string): string[] =>
  shownText(html)
    .match(/.{0,40}(?:\bUTC\b|\d{4}-\d\d-\d\dT\d\d:\d\d).{0,20}/g)
    ?.filter((text) => !ZONE_SETTING.test(text)) ?? []

/** A setting whose value is a time zone can have the value UTC. */
const ZONE_SETTING = /A name like Europe\/Berlin\./

/** The tooltip and the text of the first absolute time. */
const firstTime = (html: string) => /<time datetime="[^"]*" title="([^"]*)">([^<]*)</.exec(html)?.slice(1)

const open = async (path: string, cookies = NEW_YORK) => {
  const { admin } = await sharedHouse()
  const response = await admin.ask(`GET ${path}`, { headers: { ...HTML, cookie: `${admin.cookie}; ${cookies}` } })
  return { response, text: await response.text() }
}

/** These describe the times of the API and of commands, which are in UTC. */
const ABOUT_UTC = ['/docs/api', '/docs/:guide']

/** Tabs, filters and periods that show other times than the page by itself. */
const STATES = [
  '/accounts/:id?tab=routing',
  '/accounts/:id?tab=events',
  '/accounts/:id?tab=credentials',
  '/accounts?view=cards',
  '/dashboard?period=1h',
  '/dashboard?period=7d',
  '/dashboard?period=30d',
  '/logs?status=rejected',
  '/logs?since=2025-12-31T20:00:00Z&columns=total&columns=request',
  '/reports?measure=latency',
  '/audit?since=2025-12-31T20:00:00Z',
]

/** A house in which something has happened: events of an account, a key that expires and has limits, a rejected client. */
const livedIn = async () => {
  const house = await buildDashboard()
  const { admin, stranger, ids } = house
  await admin.ask(`POST /api/accounts/${ids.account}/pause`)
  await admin.ask(`POST /api/accounts/${ids.account}/reactivate`)
  await admin.ask(`PATCH /api/api-keys/${ids.key}`, {
    json: {
      expiresAt: '2026-03-01T00:00:00Z',
      limits: [{ limitType: 'requests', limitWindow: '5h', maxValue: 6 }],
    },
  })
  await stranger.ask('POST /v1/responses', { json: {}, headers: { authorization: 'Bearer sk-clb-unknown' } })
  return house
}

let lived: House
beforeAll(async () => {
  lived = await livedIn()
})

test.each([...PAGE_PATHS.filter((path) => !ABOUT_UTC.includes(path)), ...STATES])(
  '%s shows no UTC to a browser in New York',
  async (path) => {
    expect(notLocal(await openPage(lived, path, NEW_YORK))).toEqual([])
  },
)

test('a page with UTC is detected', () => {
  expect(notLocal('<p>at 2026-01-01 00:00:00 UTC</p>')).toHaveLength(1)
  expect(notLocal('<b>2026-01-01T00:00:00.000Z</b>')).toHaveLength(1)
  expect(notLocal('<svg aria-label="from 00:00 UTC"></svg>')).toHaveLength(1)
  expect(notLocal('<time title="2026-01-01 00:00:00 UTC">19:00</time>')).toEqual([])
})

describe('the format of a time', () => {
  // The test clock is at 2026-01-01T00:00:00Z.
  test.each([
    [NEW_YORK, '2025-12-31 19:00:00'],
    ['zone=Asia/Kolkata', '2026-01-01 05:30:00'],
    ['zone=Pacific/Kiritimati', '2026-01-01 14:00:00'],
    [`${NEW_YORK}; hours=12`, '2025-12-31 7:00:00 pm'],
    ['zone=Asia/Kolkata; hours=12', '2026-01-01 5:30:00 am'],
    ['zone=Asia/Kolkata; my_zone=America/New_York', '2025-12-31 19:00:00'],
  ])('with %s reads %s, with UTC in its tooltip', async (cookies, shown) => {
    const { text } = await open('/audit', cookies)
    expect(firstTime(text)).toEqual(['2026-01-01 00:00:00 UTC', shown])
  })

  test.each(['', 'zone=Mars/Olympus', 'zone=%22%3E%3Cscript%3E'])(
    'without a zone this runtime knows (%s), the time is in UTC and says so',
    async (cookies) => {
      const { text } = await open('/audit', cookies)
      expect(firstTime(text)).toEqual(['2026-01-01 00:00:00 UTC', '2026-01-01 00:00:00 UTC'])
      expect(text.includes('data-time-zone')).toBe(false)
    },
  )
})

describe('a time filter', () => {
  test.each([
    ['/audit?since=2026-01-10T07:00', NEW_YORK, '/audit?since=2026-01-10T12%3A00%3A00.000Z'],
    ['/logs?until=2026-07-10T09:15:30&range=', 'zone=Asia/Kolkata', '/logs?until=2026-07-10T03%3A45%3A30.000Z&range='],
    // Clocks skip this hour, so it becomes the end of the gap. They have the next one twice: the first counts.
    ['/logs?since=2026-03-08T02:30', NEW_YORK, '/logs?since=2026-03-08T07%3A00%3A00.000Z'],
    ['/logs?since=2026-11-01T01:30', NEW_YORK, '/logs?since=2026-11-01T05%3A30%3A00.000Z'],
  ])('%s with %s leads to %s', async (path, zone, target) => {
    const { response } = await open(path, zone)
    expect([response.status, response.headers.get('location')]).toEqual([302, target])
  })

  test('shows the filter in its field exactly as entered', async () => {
    const { text } = await open('/audit?since=2026-01-10T12:00:00.000Z')
    expect(/name="since" value="([^"]*)"/.exec(text)?.[1]).toBe('2026-01-10T07:00:00')
  })

  test('of a JSON client without a zone is in UTC', async () => {
    const { admin } = await sharedHouse()
    const cookie = `${admin.cookie}; ${NEW_YORK}`
    const response = await admin.ask('GET /api/audit-logs?since=2026-01-10T12:00:00', { headers: { cookie } })
    expect(response.status).toBe(200)
    const page = await admin.ask('GET /audit?since=2026-01-10T12:00:00', { headers: { cookie } })
    expect((await page.json()).filters.since).toBe('2026-01-10T12:00:00.000Z')
  })
})

describe('My account', () => {
  const setUp = async () => people(await testApp({ accounts: 0 })).as('viewer', { username: 'anna' })

  test('keeps a chosen zone and hours for the browser', async () => {
    const anna = await setUp()
    const saved = await anna.submit('POST /api/dashboard-auth/clock', { timeZone: 'America/New_York', hours: '12' })
    expect([saved.status, saved.headers.get('location')]).toEqual([303, '/me?done=clock_saved#clock'])
    const cookies = saved.headers.getSetCookie().map((cookie) => cookie.split(';')[0])
    expect(cookies).toEqual(['my_zone=America%2FNew_York', 'hours=12'])
    const cookie = [anna.cookie, ...cookies].join('; ')
    const page = await (await anna.ask('GET /me', { headers: { ...HTML, cookie } })).text()
    expect(shownText(page)).toContain('in America/New York, where it is now')
    expect(firstTime(page)).toEqual(['2026-01-01 00:00:00 UTC', '2025-12-31 7:00:00 pm'])
  })

  test('goes back to the zone of the browser when the field is empty', async () => {
    const saved = await (await setUp()).submit('POST /api/dashboard-auth/clock', { timeZone: '', hours: '24' })
    expect(saved.headers.getSetCookie().map((cookie) => cookie.replace(/;.*/, ''))).toEqual(['my_zone=', 'hours='])
  })

  test.each(['Mars/Olympus', 'Europe/Berlin; Path=/x', '</script>'])('rejects the zone %s', async (timeZone) => {
    const anna = await setUp()
    const refused = await anna.ask('POST /api/dashboard-auth/clock', { json: { timeZone } })
    expect(await problem(refused)).toEqual([422, 'validation_error'])
    const sent = await anna.submit('POST /api/dashboard-auth/clock', { timeZone, hours: '24' })
    const page = await sent.text()
    expect(shownText(page)).toContain('There is no such time zone')
  })

  test('says when the chosen zone does not exist here', async () => {
    const anna = await setUp()
    const cookie = `${anna.cookie}; ${NEW_YORK}; my_zone=Mars/Olympus`
    const page = await (await anna.ask('GET /me', { headers: { ...HTML, cookie } })).text()
    expect(shownText(page)).toContain('There is no time zone “Mars/Olympus”. Times are shown in America/New York')
  })
})
