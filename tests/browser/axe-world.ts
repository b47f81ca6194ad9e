/** The servers whose pages are checked: one with data of every kind, a new one, and one behind a proxy. */
import { Database } from 'bun:sqlite'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { World } from '../clients/support/world.ts'
import { type RunningServer, spawnServer } from '../support/spawn.ts'
import { until } from '../support/until.ts'
import { injectAxe } from './axe.ts'
import type { TestBrowser } from './browser.ts'
import { codeFor, getUrl, inviteLink, OTHER_PASSWORD, PASSWORD, send } from './people-world.ts'
import { startPopulated } from './world.ts'

const HOUR_MS = 3_600_000

/** Who looks, and where: at the full service unless the name says otherwise. */
export type Visitor = 'admin' | 'viewer' | 'member' | 'holder' | 'half' | 'nobody' | 'new' | 'far' | 'boss' | 'stranger'

/** The ids used in URLs. */
export interface Ids {
  /** By the first part of the address: ada, linus, barbara, tony … */
  accounts: Record<string, string>
  keys: Record<string, string>
  /** A request that failed, and one that did not. */
  requests: { failed: string; ok: string }
  /** One that has run, and its run. */
  automation: string
  run: string
  /** A capture that runs, and a request in it. */
  captureId: string
  capturedId: string
  membersKey: string
  /** The ID of a model source. */
  source: string
  /** The ID of an alert channel. */
  channel: string
  conversation: string
  /** The token of a pending invite. */
  inviteToken: string
  /** On this machine: an `auth.json` of a new account, and one that is broken. */
  files: string[]
}

export interface Places extends AsyncDisposable {
  ids: Ids
  /** The page of this visitor, always the same one, and the origin to open it at. */
  as(visitor: Visitor): Promise<{ page: Page; url: string; problems: string[] }>
}

type Open = Awaited<ReturnType<TestBrowser['visit']>> & { url: string }

export const startAxeServers = async (browser: TestBrowser): Promise<Places> => {
  const [world, fresh, proxied] = await Promise.all([startPopulated(), spawnServer(), startProxied()])
  const full = world.url.replace('127.0.0.1', 'localhost')
  const { ids, cookies } = await settle(world, full)
  const visitors: Record<Visitor, { url: string; cookie?: string; headers?: Record<string, string> }> = {
    admin: { url: full, cookie: cookies.admin },
    viewer: { url: full, cookie: cookies.viewer },
    member: { url: full, cookie: cookies.member },
    holder: { url: full, cookie: cookies.holder },
    half: { url: full },
    nobody: { url: full },
    new: { url: getUrl(fresh) },
    far: { url: getUrl(fresh), headers: { 'x-forwarded-for': '203.0.113.9' } },
    boss: { url: getUrl(proxied), headers: { 'remote-user': 'boss@example.test' } },
    stranger: { url: getUrl(proxied), headers: { 'remote-user': 'somebody.else@example.test' } },
  }
  const opened = new Map<Visitor, Promise<Open>>()
  const open = async (visitor: Visitor): Promise<Open> => {
    const { url, headers, cookie = visitor === 'half' ? await signInHalf(url) : undefined } = visitors[visitor]
    const visit = await browser.visit(`${url}/health/live`, { cookie })
    if (headers) await visit.page.setExtraHTTPHeaders(headers)
    await injectAxe(visit.page)
    await visit.page.emulateMedia({ reducedMotion: 'reduce' })
    return { ...visit, url }
  }
  return {
    ids,
    as: (visitor) => {
      const visit = opened.get(visitor) ?? open(visitor)
      opened.set(visitor, visit)
      return visit
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([world, fresh, proxied].map((one) => one[Symbol.asyncDispose]()))
    },
  }
}

/** The first user the proxy announces has access; later ones are unknown. */
const startProxied = async (): Promise<RunningServer> => {
  const server = await spawnServer({
    env: {
      CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header',
      CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
      CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '127.0.0.0/8,::1/128',
    },
  })
  const headers = { 'remote-user': 'boss@example.test', accept: 'text/html' }
  const first = await fetch(`${server.url}/dashboard`, { headers })
  if (!first.ok || first.redirected)
    throw new Error(`Whom the proxy announced first got ${first.status} at ${first.url}: ${await first.text()}`)
  write(server.dataDir, (db) =>
    db.run(
      "INSERT INTO auth_providers (id, kind, label, created_at, updated_at) VALUES ('idp_trusted_header', 'trusted_header', 'Reverse proxy', 0, 0)",
    ),
  )
  return server
}

type Cookies = Record<'admin' | 'viewer' | 'member' | 'holder', string>

/** Keys in each state, people in each state, a week of figures, and the cookies of three of them. */
const settle = async (world: World, url: string): Promise<{ ids: Ids; cookies: Cookies }> => {
  await makeKeys(world)
  const { accounts: listed } = await world.api<{ accounts: { accountId: string; email: string }[] }>(
    'GET',
    '/api/accounts',
  )
  const accounts = Object.fromEntries(listed.map(({ accountId, email }) => [email.split(/[.@]/)[0], accountId]))
  const keys = await world.api<{ id: string; name: string }[]>('GET', '/api/api-keys/')
  const getFirst = async (status: string) =>
    (await world.api<{ requests: { id: string }[] }>('GET', `/api/request-logs?status=${status}`)).requests[0]?.id ?? ''
  const requests = { failed: await getFirst('failed'), ok: await getFirst('ok') }
  const { id: automation } = await world.api<{ id: string }>('POST', '/api/automations', {
    name: 'Mornings',
    schedule: { time: '07:55' },
  })
  const { id: run } = await world.api<{ id: string }>('POST', `/api/automations/${automation}/run-now`)
  const { key, ...captured } = await captureOne(world, url)
  recordWeek(world.dataDir, accounts.ada ?? '')
  await world.api('PATCH', '/api/settings', {
    streamTimeoutSeconds: 3600,
    guestAccessEnabled: false,
    keyHolderPage: true,
  })
  await world.api('POST', '/api/firewall/ips', { ipAddress: '127.0.0.0/8' })
  await world.api('POST', '/api/backups')
  await makeProxies(world, accounts.tony ?? '')
  const models = [{ model: 'llama-4', contextWindow: 128_000, supportsTools: true, inputPer1m: 0.1, outputPer1m: 0.4 }]
  const rack = { name: 'Rack', baseUrl: 'http://10.1.2.3:8000/v1', models }
  const { id: source } = await world.api<{ id: string }>('POST', '/api/model-sources/', rack)
  const { id: channel } = await world.api<{ id: string }>('POST', '/api/alerts/channels', {
    ...{ kind: 'webhook', name: 'Pager', target: { url: 'https://203.0.113.9/hook' } },
  })
  const files = ['new.json', 'broken.json'].map((name) => join(world.dataDir, name))
  writeFileSync(files[0] ?? '', world.upstream.addAccount({ email: 'emmy@example.test' }).authJson())
  writeFileSync(files[1] ?? '', '{"tokens":')
  const { inviteToken, cookies, membersKey } = await makePeople(url)
  const holder = toCookie(await send(url, 'POST', '/api/key/session', { secret: key }))
  return {
    ids: {
      accounts,
      keys: Object.fromEntries(keys.map(({ id, name }) => [name.split(' ')[0], id])),
      requests,
      automation,
      run,
      ...captured,
      membersKey,
      source,
      channel,
      inviteToken,
      files,
    },
    cookies: { ...cookies, holder },
  }
}

/** A pool with two proxies, used by one account. */
const makeProxies = async ({ api }: World, accountId: string): Promise<void> => {
  const make = (name: string) =>
    api<{ id: string }>('POST', '/api/settings/upstream-proxy/endpoints', {
      ...{ name, scheme: 'socks5h', host: '10.1.2.4', port: 1080 },
    })
  const [frankfurt, amsterdam] = [await make('Frankfurt'), await make('Amsterdam')]
  const endpointIds = [frankfurt.id, amsterdam.id]
  const { id: poolId } = await api<{ id: string }>('POST', '/api/settings/upstream-proxy/pools', {
    name: 'Europe',
    endpointIds,
  })
  await make('Vienna')
  await api('PUT', `/api/settings/upstream-proxy/accounts/${accountId}/binding`, { poolId })
}

/** A capture with one request of a conversation, which fails or not as the pool is. Both are stored when this resolves. */
const captureOne = async (
  { api, output }: World,
  url: string,
): Promise<Pick<Ids, 'captureId' | 'capturedId' | 'conversation'> & { key: string }> => {
  const { id: keyId, key } = await api<{ id: string; key: string }>('POST', '/api/api-keys/', { name: 'captured' })
  const { id: captureId } = await api<{ id: string }>('POST', '/api/captures', { keyId, minutes: 60 })
  const response = await fetch(`${url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-5.5', input: 'hello', prompt_cache_key: 'a conversation' }),
  })
  await response.text()
  let capturedId: string | undefined
  let conversation: string | undefined
  await until(async () => {
    const { items } = await api<{ items: { id: string }[] }>('GET', '/api/conversation-archive')
    const { conversations } = await api<{ conversations: { conversationId: string }[] }>('GET', '/api/conversations')
    capturedId = items[0]?.id
    conversation = conversations[0]?.conversationId
    return capturedId !== undefined && conversation !== undefined
  }, output)
  return { captureId, capturedId: capturedId ?? '', conversation: conversation ?? '', key }
}

const makeKeys = async ({ api }: World): Promise<void> => {
  const limits = [
    { limitType: 'cost_usd', limitWindow: 'weekly', maxValue: 25_000_000 },
    { limitType: 'requests', limitWindow: '5h', maxValue: 6 },
  ]
  const expiresAt = new Date(Date.now() + 30 * 24 * HOUR_MS).toISOString()
  await api('POST', '/api/api-keys/', { name: 'ci', allowedModels: ['gpt-5.5'], limits, expiresAt })
  await api('POST', '/api/api-keys/', { name: 'nightly batch job with a rather long name that goes on' })
  const { id } = await api<{ id: string }>('POST', '/api/api-keys/', { name: 'off' })
  await api('PATCH', `/api/api-keys/${id}`, { isActive: false })
}

interface People {
  inviteToken: string
  cookies: Omit<Cookies, 'holder'>
  membersKey: string
}

/** An Admin, a viewer, a Member with a key, a user with a second factor, a disabled user, and a pending invite. */
const makePeople = async (url: string): Promise<People> => {
  const setUp = await send(url, 'POST', '/api/dashboard-auth/password/setup', { password: PASSWORD })
  const admin = toCookie(setUp)
  const owned = { url, cookie: admin }
  const join = async (username: string, role = 'role_viewer') => {
    const token = (await inviteLink(owned, username, role)).split('/').at(-1)
    const body = { token, password: OTHER_PASSWORD }
    return toCookie(await send(url, 'POST', '/api/dashboard-auth/invite/accept', body))
  }
  const viewer = await join('grace')
  const member = await join('noor', 'role_member')
  const created = await send(url, 'POST', '/api/api-keys/', { name: 'own' }, member)
  const { id: membersKey } = (await created.json()) as { id: string } // as: the API's answer
  const hal = await join('hal')
  await enroll(url, hal)
  await join('edith')
  const users = await fetch(`${url}/api/dashboard-users`, { headers: { cookie: admin, accept: 'application/json' } })
  const people = (await users.json()) as { id: string; username: string }[] // as: the API's answer
  const edith = people.find(({ username }) => username === 'edith')
  await send(url, 'PATCH', `/api/dashboard-users/${edith?.id}`, { status: 'disabled' }, admin)
  await send(url, 'POST', '/api/dashboard-roles', { name: 'Watch', grants: ['dashboard:read'] }, admin)
  const inviteToken = (await inviteLink(owned, 'vera', 'role_viewer')).split('/').at(-1) ?? ''
  return { inviteToken, cookies: { admin, viewer, member }, membersKey }
}

/** A session before the second factor, which lasts only minutes: so it begins when it is needed. */
const signInHalf = async (url: string): Promise<string> => {
  const credentials = { username: 'hal', password: OTHER_PASSWORD }
  return toCookie(await send(url, 'POST', '/api/dashboard-auth/password/login', credentials))
}

const enroll = async (url: string, cookie: string): Promise<void> => {
  const started = await send(url, 'POST', '/api/dashboard-auth/totp/setup/start', {}, cookie)
  const { secret } = (await started.json()) as { secret: string } // as: the API's answer
  await send(url, 'POST', '/api/dashboard-auth/totp/setup/confirm', { secret, code: codeFor(secret) }, cookie)
}

const toCookie = (response: Response): string => response.headers.getSetCookie()[0]?.split(';')[0] ?? ''

/** Samples with a gap, totals of several days and events of every kind, as the hourly jobs store them. */
const recordWeek = (dataDir: string, accountId: string): void => {
  const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  const events = [
    ['import', 'added', 'auth.json'],
    ['state', 'rate_limited', '429 usage_limit_reached: The usage limit has been reached'],
    ['probe', 'served', 'HTTP 200'],
  ]
  write(dataDir, (db) => {
    for (let back = 167; back > 0; back -= 1) {
      if (back > 60 && back < 72) continue
      const values = [accountId, hour - back * HOUR_MS, (back * 37) % 90, ((167 - back) * 0.6) % 100]
      db.run('INSERT INTO usage_samples (account_id, hour, five_hour_used, weekly_used) VALUES (?, ?, ?, ?)', values)
    }
    for (let back = 160; back > 0; back -= 8)
      db.run(
        `INSERT INTO meter_readings (account_id, "window", at, used_percent, window_minutes, reset_at, running,
           priced_micros_here, tokens_here, requests_here, unpriced_here)
         VALUES (?, 'weekly', ?, ?, 10080, ?, 0, ?, 1000, ?, 0)`,
        [
          accountId,
          hour - back * HOUR_MS,
          (160 - back) * 0.5,
          hour + 20 * HOUR_MS,
          ...(back === 40 ? [0, 0] : [1_500_000, 40]),
        ],
      )
    for (const [index, model] of ['gpt-5.5', 'gpt-5.4-mini', 'gpt-5.5'].entries())
      db.run(
        `INSERT OR REPLACE INTO request_hours
           (hour, account_id, key_id, model, requests, errors, cancelled, input_tokens, cached_input_tokens,
            output_tokens, cost_micros, unpriced)
         VALUES (?, ?, '', ?, 120, 2, 1, 90000, 30000, 12000, ?, 0)`,
        [hour - (5 + 30 * index) * HOUR_MS, accountId, model, 1_234_000 / (index + 1)],
      )
    for (const [index, [kind = '', result = '', detail = '']] of events.entries())
      db.run('INSERT INTO account_events (account_id, at, kind, result, detail) VALUES (?, ?, ?, ?, ?)', [
        accountId,
        Date.now() - (5 - index) * HOUR_MS,
        kind,
        result,
        detail,
      ])
  })
}

const write = (dataDir: string, run: (db: Database) => void): void => {
  const db = new Database(join(dataDir, 'sluice.db'))
  db.run('PRAGMA busy_timeout = 5000')
  run(db)
  db.close()
}
