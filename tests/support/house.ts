/** A dashboard with one of everything, for tests that open every page. */
import { everyRoute } from '../../src/every-route.ts'
import { codexBody, testApp } from './app.ts'
import { people, REMOTE } from './people.ts'

/** What answers a browser and is no page: other programs' business, files, streams, and ways to a page. */
const NO_PAGES =
  /^\/(api|v1|backend-api|assets|health)(\/|$)|^\/(metrics|doctor\/(stream|socket)|openapi\.json|logs\/(tail|export|explain)|apis)?$/

export const PAGE_PATHS = everyRoute
  .filter(({ method, path }) => method === 'GET' && !NO_PAGES.test(path))
  .map(({ path }) => path)

export const buildHouse = async () => {
  const app = testApp({ accounts: [{ email: 'ada@example.test' }] })
  const crowd = people(app)
  const admin = crowd.as('admin', { username: 'anna' })
  const key = app.key({ name: 'laptop' })
  const turn = { json: codexBody(), headers: { authorization: `Bearer ${key.key}` } }
  await (await app.ask('POST /backend-api/codex/responses', turn)).text()
  const invited = await admin.ask('POST /api/dashboard-users', { json: { username: 'berta', role: 'viewer' } })
  const { invite } = (await invited.json()) as { invite: { token: string } } // as: made just now
  const half = crowd.browser(REMOTE)
  crowd.add({ username: 'carla', hasTotp: true })
  await half.submit('POST /api/dashboard-auth/password/login', { username: 'carla', password: 'correct horse battery' })
  return {
    admin,
    half,
    stranger: crowd.browser(REMOTE),
    as: crowd.as,
    ids: { account: app.members[0]!.id, key: key.row.id, request: app.rows()[0]!.id, invite: invite.token },
  }
}
