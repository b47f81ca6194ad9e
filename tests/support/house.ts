/** A dashboard with one of everything, for tests that open every page. */
import { everyRoute } from '../../src/routes/every-route.ts'
import { codexBody, testApp } from './app.ts'
import { people, REMOTE } from './people.ts'
import { SOURCE_URL } from './source/app.ts'

/** What answers a browser and is no page: other programs' business, files, streams, parts of pages, and redirects. */
const NO_PAGES =
  /^\/(api|v1|backend-api|wham|mcp|assets|health)(\/|$)|^\/(metrics|doctor\/(stream|socket|checks)|openapi\.json|logs\/(tail|export|explain)|footer|capture-line|bell|apis)?$/

export const PAGE_PATHS = everyRoute
  .filter(({ method, path }) => method === 'GET' && !NO_PAGES.test(path))
  .map(({ path }) => path)

export const buildDashboard = async () => {
  const app = await testApp({ accounts: [{ email: 'ada@example.test' }] })
  const crowd = people(app)
  const admin = await crowd.as('admin', { username: 'anna' })
  const key = await app.key({ name: 'laptop' })
  const capture = app.bindings.captures.start({
    ...{ keyId: key.row.id, accountId: null, minutes: 60, maxBytes: 1e6 },
    startedBy: { id: 'test', name: 'anna' },
  })
  const turn = {
    json: codexBody('hello', { prompt_cache_key: 'talk' }),
    headers: { authorization: `Bearer ${key.key}` },
  }
  await (await app.ask('POST /backend-api/codex/responses', turn)).text()
  const invited = await admin.ask('POST /api/dashboard-users', { json: { username: 'berta', role: 'viewer' } })
  const { invite } = (await invited.json()) as { invite: { token: string } } // as: just created
  const made = await admin.ask('POST /api/automations', { json: { name: 'Mornings', schedule: { time: '07:55' } } })
  const { id: automation } = (await made.json()) as { id: string } // as: just created
  const started = await admin.ask(`POST /api/automations/${automation}/run-now`)
  const { id: run } = (await started.json()) as { id: string } // as: the same
  const source = { name: 'Rack', baseUrl: SOURCE_URL, models: [{ model: 'llama-4', inputPer1m: 0.1 }] }
  const { id: sourceId } = (await (await admin.ask('POST /api/model-sources/', { json: source })).json()) as {
    id: string
  } // as: just created
  const hook = { kind: 'webhook', name: 'Pager', target: { url: 'https://203.0.113.9/hook' }, secret: 'hook secret' }
  const { id: channel } = (await (await admin.ask('POST /api/alerts/channels', { json: hook })).json()) as {
    id: string
  } // as: just created
  const half = crowd.browser(REMOTE)
  await crowd.add({ username: 'carla', hasTotp: true })
  await half.submit('POST /api/dashboard-auth/password/login', { username: 'carla', password: 'correct horse battery' })
  return {
    admin,
    half,
    stranger: crowd.browser(REMOTE),
    as: crowd.as,
    ids: {
      account: app.members[0]!.id,
      key: key.row.id,
      request: (await app.rows())[0]!.id,
      conversation: (await app.rows())[0]!.conversationHash!,
      automation,
      run,
      capture: capture.id,
      source: sourceId,
      channel,
      invite: invite.token,
    },
  }
}

export type House = Awaited<ReturnType<typeof buildDashboard>>

let shown: Promise<House> | null = null

/** The same house for every test of a file that only looks at pages: building one takes far longer than a page. */
export const sharedHouse = (): Promise<House> => {
  shown ??= buildDashboard()
  return shown
}

/** The page at a path of the route table, with an id if it takes one, as the admin's browser gets it. */
export const openPage = async ({ admin, ids }: House, path: string, cookies = ''): Promise<string> => {
  const [, first, second, third] = path.split('/')
  const id = {
    accounts: ids.account,
    keys: ids.key,
    logs: ids.request,
    captures: ids.capture,
    conversations: ids.conversation,
    invite: ids.invite,
    docs: 'operating',
    settings:
      second === 'sources'
        ? ids.source
        : second === 'alerts'
          ? ids.channel
          : third === 'runs'
            ? ids.run
            : ids.automation,
  }
  const part = ['captures', 'conversations'].find((name) => path.includes(`/${name}/`)) ?? first
  const of = part as keyof typeof id // as: any other path takes no id
  const headers = { accept: 'text/html', cookie: [admin.cookie, cookies].filter(Boolean).join('; ') }
  return (await admin.ask(`GET ${path.replace(/:[a-z]\w*/, () => id[of])}`, { headers })).text()
}
