/**
 * The requests of the mutation matrix: a valid body for every route that changes something, and who can use open ones.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { commit, notice } from '../../db/commit.ts'
import { affinity } from '../../db/schema/accounts.ts'
import { alertIncidents } from '../../db/schema/alerts.ts'
import { egressEndpoints, egressMembers, egressPools } from '../../db/schema/egress.ts'
import { oauthFlows } from '../../db/schema/history.ts'
import { identities, invites, passkeys, sessions } from '../../db/schema/people.ts'
import { pauseAccount } from '../../src/model/accounts/accounts.ts'
import { parseAuthJson } from '../../src/model/accounts/auth-json.ts'
import { flowContext } from '../../src/model/accounts/oauth-flows.ts'
import { NewChannel } from '../../src/model/alerts/channel-input.ts'
import { createChannel } from '../../src/model/alerts/channels.ts'
import { createAutomation } from '../../src/model/automations/automations.ts'
import { addEntry } from '../../src/model/firewall.ts'
import { createKeySession } from '../../src/model/keys/key-sessions.ts'
import { storePlan } from '../../src/model/planner/decisions.ts'
import { NewSource } from '../../src/model/sources/source-input.ts'
import { createSource as addSource } from '../../src/model/sources/source-rows.ts'
import { stickyKey } from '../../src/model/sticky/session-key.ts'
import { setGuestPassword } from '../../src/model/users/guest.ts'
import { createSession, hashToken } from '../../src/model/users/sessions.ts'
import { Backups } from '../../src/ops/backups.ts'
import { sha256 } from '../../src/proxy/pool/affinity.ts'
import { testApp } from '../support/app.ts'
import {
  type Browser,
  type Fields,
  PASSWORD,
  people,
  REMOTE,
  type SignedIn,
  type TestUser,
  TOTP_SECRET,
} from '../support/people.ts'
import { SOURCE_URL } from '../support/source/app.ts'

const INVITE = 'i'.repeat(43)
const ORIGIN = 'http://localhost:2455'
const DAY_MS = 24 * 3_600_000
/** Instead of the data folder of the user who runs the tests. */
const BACKUPS = mkdtempSync(join(tmpdir(), 'sluice-matrix-'))
process.once('exit', () => rmSync(BACKUPS, { recursive: true, force: true })) // several files share it

export type Kind = 'nobody' | 'guest' | 'account' | 'half' | 'held' | 'proxied'

/** `strict`: every user with a password needs a second factor. */
export type WorldKind = 'plain' | 'proxied' | 'strict'

const BEHIND_PROXY = {
  CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header',
  CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
}

export type World = Awaited<ReturnType<typeof buildWorld>>

const getOptions = (kind: WorldKind) => ({
  settings: {
    ...{ guestAccessEnabled: true, apiKeyAuthEnabled: true, keyHolderPage: true },
    totpRequiredOnLogin: kind === 'strict',
  },
  environment: { CODEX_LB_PUBLIC_URL: ORIGIN, ...(kind === 'proxied' && BEHIND_PROXY) },
})

/** One of everything that can be changed. */
const buildSeed = async (isPaused: boolean, kind: WorldKind) => {
  const app = await testApp(getOptions(kind))
  const crowd = people(app)
  const { db, clock, bindings } = app
  const { random, sealer } = bindings
  const now = clock.now()
  const actor = { id: 'test', method: null, address: null, at: now }
  const accountId = app.members[0]?.id ?? ''
  if (isPaused) await commit(db, (tx) => pauseAccount(tx, accountId, actor))
  const start = { id: PLANNED_START, createdAt: now, accountId, scheduledAt: now + DAY_MS, idempotencyKey: 'day' }
  await commit(db, (tx) => storePlan(tx, [{ ...start, mode: 'advise', status: 'planned' }], now))
  for (const [slug, grants] of Object.entries(CUSTOM)) await crowd.addRole(slug, grants)
  const target = (await crowd.add({ username: 'target', role: 'plain', hasTotp: true })).row
  const inviter = (await crowd.add({ username: 'inviter', role: 'admin' })).row
  const invited = (await crowd.add({ username: 'invited', role: 'plain', status: 'invited', hasPassword: false })).row
  const automationId = (await commit(db, (tx) => createAutomation(tx, AUTOMATION, { actor, random }))).id
  const channel = { kind: 'webhook', name: 'Pager', target: { url: HOOK } }
  const channelId = (
    await commit(db, (tx) =>
      createChannel(tx, NewChannel.parse(channel), {
        ...{ actor, random, sealer, requireConfirmation: () => {}, mayReadAudit: true },
      }),
    )
  ).id
  await commit(db, async (tx) => {
    await tx.insert(alertIncidents).values(INCIDENT).run()
    notice(tx, 'alerts')
  })
  const targetSession = await commit(db, async (tx) => {
    await setGuestPassword(tx, target.passwordHash ?? '', actor)
    for (const ip of [REMOTE, '127.0.0.1']) await addEntry(tx, ip, actor)
    await tx
      .insert(invites)
      .values({
        userId: invited.id,
        tokenHash: hashToken(INVITE),
        createdBy: inviter.id,
        createdAt: now,
        expiresAt: now + DAY_MS,
      })
      .run()
    await tx
      .insert(affinity)
      .values({ kind: 'conversation', keyHash: STICKY_HASH, accountId, usedAt: now - 31 * DAY_MS })
      .run()
    for (const id of ['egr_a', 'egr_b'])
      await tx
        .insert(egressEndpoints)
        .values({ ...PROXY, id, name: id, createdAt: now })
        .run()
    await tx.insert(egressPools).values({ id: 'pool_a', name: 'pool_a', createdAt: now }).run()
    await tx.insert(egressMembers).values({ poolId: 'pool_a', endpointId: 'egr_a', sortOrder: 0 }).run()
    notice(tx, 'egress')
    return (await createSession(tx, random, { ...session(now), userId: target.id, method: 'password' })).row.id
  })
  const sourceId = (
    await commit(db, (tx) =>
      addSource(tx, NewSource.parse({ name: 'Rack', baseUrl: SOURCE_URL, apiKey: 'sk-source-secret-key' }), {
        actor,
        random,
        sealer,
        requireConfirmation: () => {},
      }),
    )
  ).id
  const key = await app.key({ holderMayRegenerate: true })
  const { token: keyToken } = await commit(db, (tx) => createKeySession(tx, random, { keyHash: key.row.keyHash, now }))
  const things = {
    ...{ accountId, sourceId, automationId, channelId, targetSession, key, keyToken },
    ...{ roleId: await crowd.addRole('spare', {}), targetId: target.id, invitedId: invited.id },
  }
  return { prepared: app.prepare(), things }
}

const seeds = new Map<string, ReturnType<typeof buildSeed>>()

const getSeed = (isPaused: boolean, kind: WorldKind): ReturnType<typeof buildSeed> => {
  const name = JSON.stringify([isPaused, kind])
  const seed = seeds.get(name) ?? buildSeed(isPaused, kind)
  seeds.set(name, seed)
  return seed
}

/** The world before each request that may change it. */
export const buildWorld = async (
  { hasTotp = false, isPaused }: Pick<Mutation, 'hasTotp' | 'isPaused'> = {},
  kind: WorldKind = 'plain',
) => {
  const { prepared, things } = await getSeed(isPaused === true, kind)
  const app = await testApp({ ...getOptions(kind), prepared })
  const crowd = people(app)
  const { db, clock, bindings } = app
  const { random, sealer } = bindings
  const now = clock.now()
  const fiveHour = { usedPercent: 0, windowMinutes: 300, resetAt: null }
  const live = bindings.pool.get(things.accountId)
  if (live) live.usage = { at: 0, windows: { fiveHour, weekly: null, monthly: null }, credits: null, planType: null }
  app.members[0]?.sim.setResetCredits([{ id: 'credit', expiresAt: now + DAY_MS, grantedAt: now - DAY_MS }])
  bindings.ops.backups = new Backups({ dir: mkdtempSync(join(BACKUPS, 'of-')), clock, write: writeNothing })
  const authJson = app.upstream.addAccount().authJson()
  const as = async (role: string, isConfirmed = true, how: SignedIn = {}) => {
    const self = await crowd.as(role, { hasTotp, isConfirmed, ...how })
    const userId = self.person.row.id
    const passkeyId = random.id('pk')
    const flowId = random.id('flow')
    const sessionId = await commit(db, async (tx) => {
      await tx
        .insert(oauthFlows)
        .values({ ...WAITING, id: flowId, secretSealed: sealer.seal('x', flowContext(flowId)), ...begun(userId, now) })
        .run()
      await tx
        .insert(passkeys)
        .values({ ...PASSKEY, id: passkeyId, credentialId: passkeyId, userId, createdAt: now })
        .run()
      return (await createSession(tx, random, { ...session(now), userId, method: 'password' })).row.id
    })
    return { browser: self, passkeyId, sessionId, flowId }
  }
  const guest = async () => {
    const browser = crowd.browser(REMOTE)
    const { token } = await commit(db, (tx) =>
      createSession(tx, random, { ...session(now), userId: null, method: 'guest' }),
    )
    return {
      browser: Object.assign(browser, { cookie: `sluice_session=${token}` }),
      ...NOTHING,
      sessionId: 'a guest has one',
    }
  }
  let anna: Awaited<ReturnType<typeof as>> | null = null
  /** Signed in as `anna` by the proxy's header, and confirmed. */
  const announced = async () => {
    anna ??= await addAnna()
    return anna
  }
  const addAnna = async () => {
    const asker = await as('admin', true, { hasPassword: false, method: 'trusted_header' })
    await commit(db, (tx) =>
      tx
        .insert(identities)
        .values({
          id: 'idn_anna',
          userId: idOf(asker),
          provider: 'trusted_header',
          subject: 'anna',
          createdAt: now,
          lastSeenAt: now,
        })
        .run(),
    )
    return asker
  }
  /** A user who has entered the password and not yet the code. */
  const half = async () => {
    const asker = await as('admin', true, { hasTotp: true })
    await commit(db, (tx) =>
      tx
        .update(sessions)
        .set({ isComplete: false })
        .where(eq(sessions.userId, idOf(asker)))
        .run(),
    )
    return asker
  }
  return {
    app,
    as,
    announced,
    half,
    guest,
    nobody: () => ({ browser: crowd.browser(REMOTE), ...NOTHING }),
    code: crowd.code(),
    authJson,
    /** Files of an import preview, which belong to the user who sent them. */
    getDraft: (browser: Browser): string => {
      const owner = ownerOf(browser)
      const account = parseAuthJson(authJson, 'auth.json')
      const entry = { id: '0', file: 'auth.json', verdict: 'new', reason: null, account, existing: null } as const
      return bindings.importDrafts.keep(owner, { entries: [entry], outcome: null }).id
    },
    getPlan: (browser: Browser): string => {
      const account = parseAuthJson(authJson, 'auth.json')
      const found = { label: 'x', account, refreshToken: null, problem: null, extras: {}, foreignId: null }
      const content = { kind: 'account', found, existingId: null, foreignIds: [] } as const
      const item = {
        id: '0',
        kind: 'account',
        label: 'x',
        verdict: 'new',
        reason: null,
        source: 0,
        content,
        result: null,
      } as const
      return bindings.importPlans.keep(ownerOf(browser), {
        sources: [],
        items: [item],
        accountIds: new Map(),
        poolIds: new Map(),
        knownProxies: new Map(),
      }).id
    },
    ...things,
  }
}

const ownerOf = (browser: Browser): string =>
  'person' in browser ? (browser.person as { row: { id: string } }).row.id : 'nobody' // as: what `as` gave

/** A conversation that stays on the account, and has expired. */
const PLANNED_START = 'plan_1'
const STICKY_HASH = sha256('a conversation')
const STICKY_KEY = stickyKey(STICKY_HASH)

/** The custom roles of users. Users who manage others hold what `plain` does, so they can give it. */
export const CUSTOM = { plain: {}, greeter: { 'users:manage': 'all' } } as const

const idOf = ({ browser }: { browser: TestUser }): string => browser.person.row.id
/** A pending upstream sign-in with a code. The clock does not move, so it is not polled. */
const WAITING = {
  method: 'device',
  status: 'pending',
  accountId: null,
  stateHash: null,
  userCode: 'ABCD-1234',
  intervalSeconds: 5,
} as const

const begun = (createdBy: string, now: number) => ({ createdBy, createdAt: now, expiresAt: now + DAY_MS })

const writeNothing = async (target: string): Promise<null> => {
  writeFileSync(target, '')
  return null
}

const AUTOMATION = {
  ...{ name: 'Mornings', enabled: true, kind: 'ping', model: null, effort: null, prompt: 'ping', includePaused: false },
  ...{ time: '07:55', zone: 'UTC', days: ['mon'], spreadMinutes: 0, accountIds: null },
} satisfies Parameters<typeof createAutomation>[1]

const HOOK = 'https://203.0.113.9/hook'
const INCIDENT = {
  id: 'inc_1',
  key: 'pool.low:pool',
  event: 'pool.low',
  severity: 'warning',
  subjectKind: 'pool',
  subjectId: 'pool',
  subjectName: 'All accounts',
  subjectMasked: 'All accounts',
  text: 'Only 1 of 2 accounts is available',
  textMasked: 'Only 1 of 2 accounts is available',
  path: '/accounts',
  since: 1,
  raisedAt: 2,
} as const

const PROXY = { scheme: 'http', host: 'proxy.test', port: 8080 } as const
const NOTHING = { passkeyId: 'none', sessionId: 'none', flowId: 'none' }
const PASSKEY = { name: 'Phone', publicKey: 'AAAA', counter: 0, transports: [] }
const session = (now: number) => ({
  isComplete: true,
  isConfirmed: false,
  now,
  expiresAt: now + DAY_MS,
  address: null,
  userAgent: null,
})

/** The requesting user, as far as paths name their own things. */
export type Asker = ReturnType<World['nobody']>

export interface Mutation {
  /** In the place of `:name` in the path. */
  params?: (world: World, asker: Asker) => Record<string, string>
  fields?: (world: World, asker: Asker) => Fields
  /** For an open route: who passes the check of its handler. `stranger` is signed in as no user. */
  open?: 'anybody' | 'account' | 'stranger'
  /** Accounts have a second factor. */
  hasTotp?: boolean
  /** The upstream account is set aside. */
  isPaused?: true
  /** The body contains a field for which the route requires more. */
  isSensitive?: true
  /** RequestFormat it ends for those who pass, where no plain body can succeed. */
  ends?: [status: number, code: string]
  /** The result for a user who may change only their own keys. */
  othersKey?: [status: number, code: string]
  /** That end is a wrong secret, which is written down. */
  isWrongSecret?: true
  /** The result for a user at the enrollment gate, if not a redirect there; null: succeeds. */
  held?: [status: number, code: string] | null
  /** The result for a user who has yet to enter the code. */
  half?: [status: number, code: string] | null
  /** The result for a proxy user without a password, if different from an Admin. */
  proxied?: [status: number, code: string]
  /** The recorded entry, if it depends on the user. */
  events?: (asker: Asker, kind: Kind) => readonly string[]
  /** Takes no JSON. */
  isFormOnly?: true
}

const AUTH = '/api/dashboard-auth'
const USERS = '/api/dashboard-users'

const account = { params: ({ accountId }: World) => ({ id: accountId }) }
const chosen: Mutation = { fields: ({ accountId }) => ({ accountIds: accountId }) }
const upload: Mutation = { fields: ({ authJson }) => ({ auth_json: authJson }), isFormOnly: true }
const key: Mutation = { params: (world) => ({ id: world.key.row.id }), othersKey: [404, 'not_found'] }
/** In a browser that has entered a key, whether its user is signed in or not. */
const keyHolder: Mutation = {
  fields: ({ keyToken }, { browser }) => {
    browser.cookie = [browser.cookie, `sluice_key=${keyToken}`].filter(Boolean).join('; ')
    return {}
  },
  open: 'anybody',
}
const automation = { params: (world: World) => ({ id: world.automationId }) }
const EGRESS = '/api/settings/upstream-proxy'
const endpoint = { params: () => ({ id: 'egr_a' }) }
const pool = { params: () => ({ id: 'pool_a' }) }
const member = { params: () => ({ id: 'pool_a', endpointId: 'egr_a' }) }
const target = { params: ({ targetId }: World) => ({ id: targetId }) }
const invited = { params: ({ invitedId }: World) => ({ id: invitedId }) }
/** A capture, with one request in it. */
const startCapture = ({ app, key }: World): { captureId: string; requestId: string } => {
  const { captures } = app.bindings
  const scope = { keyId: key.row.id, accountId: null }
  const started = () => captures.start({ ...scope, minutes: 15, maxBytes: 1e6, startedBy: { id: 'test', name: null } })
  const { id } = captures.running()[0] ?? started()
  const requestId = 'trn_captured'
  writeFileSync(join(app.dir, 'captures', id, `${requestId}.bin`), '')
  return { captureId: id, requestId }
}
const capture = { params: (world: World) => ({ id: startCapture(world).captureId }) }
const role = { params: ({ roleId }: World) => ({ id: roleId }) }
const passkey = { params: (_: World, { passkeyId }: Asker) => ({ id: passkeyId }) }
const ownFlow: Mutation = { fields: (_, { flowId }) => ({ flowId }) }
const NO_PASSWORD: [number, string] = [400, 'password_not_configured']
const password = () => ({ password: PASSWORD })
const code = (world: World) => ({ code: world.code })
const source = { params: ({ sourceId }: World) => ({ id: sourceId }) }
const channel = { params: ({ channelId }: World) => ({ id: channelId }) }
/** Both set an address, which needs a confirmation. */
const newSource: Mutation = {
  fields: () => ({ name: 'Attic', baseUrl: 'http://source.test/attic' }),
  isSensitive: true,
}
const newKey: Mutation = { fields: () => ({ name: 'laptop' }) }
const sensitive: Mutation = {
  fields: () => ({ apiKeyAuthEnabled: false }),
  isSensitive: true,
}
const removal: Mutation = { fields: password, open: 'account', ends: [409, 'other_users_exist'], proxied: NO_PASSWORD }
const profile: Mutation = { fields: () => ({ displayName: 'TestUser' }), open: 'account', held: null }

/** A credential that no authenticator has created. */
const forged = (members: object): Fields => ({
  response: JSON.stringify({
    id: 'AAAA',
    rawId: 'AAAA',
    type: 'public-key',
    response: { clientDataJSON: Buffer.from('{"challenge":"x"}').toString('base64url'), ...members },
  }),
})
const assertion = () => forged({ authenticatorData: 'AAAA', signature: 'AAAA' })
const REFUSED: [number, string] = [400, 'invalid_passkey']

/** Method and path as in the route table → how to make the change. */
export const MUTATIONS: Record<string, Mutation> = {
  'POST /api/codex/rate-limit-reset-credits/consume': {},
  'POST /api/codex/rate-limit-reset-credits/consume/': {},
  'POST /api/fleet/refresh': {},

  'PUT /api/settings': sensitive,
  'PATCH /api/settings': sensitive,
  'POST /api/oauth/start': { fields: () => ({ forceMethod: 'device' }) },
  'POST /api/oauth/complete': ownFlow,
  'POST /api/oauth/manual-callback': {
    fields: () => ({ callbackUrl: 'http://localhost:1455/auth/callback?code=c&state=unknown' }),
    ends: [400, 'invalid_callback'],
  },
  'POST /api/oauth/cancel': ownFlow,
  'POST /api/accounts/import': upload,
  'POST /api/accounts/import/preflight': { ...upload, events: () => [] }, // only a single file is imported right away
  'POST /api/accounts/import/preflight/:id': {
    params: (world, asker) => ({ id: world.getDraft(asker.browser) }),
    fields: () => ({ files: '0' }),
  },
  'POST /api/import/preflight': {
    fields: ({ authJson }) => ({ files: authJson }),
    isFormOnly: true,
    events: () => [],
  },
  'POST /api/import/:id': {
    params: (world, asker) => ({ id: world.getPlan(asker.browser) }),
    fields: () => ({ items: 'all' }),
  },
  'POST /api/accounts/pause': chosen,
  'POST /api/accounts/reactivate': { ...chosen, isPaused: true },
  'POST /api/accounts/routing-policy': {
    fields: ({ accountId }) => ({ accountIds: accountId, routingPolicy: 'preserve' }),
  },
  'POST /api/accounts/tags': {
    fields: ({ accountId }) => ({ accountIds: accountId, add: 'team-a' }),
  },
  'POST /api/accounts/probe': chosen,
  'POST /api/accounts/export': chosen,
  'POST /api/accounts/delete': chosen,
  'PATCH /api/accounts/:id': { ...account, fields: () => ({ securityWorkAuthorized: true }) },
  'DELETE /api/accounts/:id': account,
  'POST /api/accounts/:id/pause': account,
  'POST /api/accounts/:id/reactivate': { ...account, isPaused: true },
  'POST /api/accounts/:id/probe': account,
  'POST /api/accounts/:id/export/auth': account,
  'POST /api/accounts/:id/rate-limit-reset-credits/consume': account,
  'PUT /api/accounts/:id/limit-warmup': { ...account, fields: () => ({ enabled: true }) },
  'POST /api/accounts/:id/release': account,
  'PUT /api/quota-planner/settings': { fields: () => ({ minGainPercent: 7 }) },
  'POST /api/quota-planner/decisions/:id/cancel': { params: () => ({ id: PLANNED_START }) },
  'POST /api/quota-planner/warm-now': { fields: ({ accountId }) => ({ accountId }) },
  'POST /api/sticky-sessions/purge': { fields: () => ({ staleOnly: true }) },
  'POST /api/sticky-sessions/delete': { fields: () => ({ sessions: `conversation:${STICKY_KEY}` }), isFormOnly: true },
  'POST /api/sticky-sessions/delete-filtered': { fields: () => ({ keyQuery: STICKY_KEY }) },
  'DELETE /api/sticky-sessions/:kind/:key{.+}': { params: () => ({ kind: 'conversation', key: STICKY_KEY }) },
  'PUT /api/accounts/:id/alias': { ...account, fields: () => ({ alias: 'first' }) },
  'PUT /api/accounts/:id/routing-policy': { ...account, fields: () => ({ routingPolicy: 'preserve' }) },
  'POST /api/api-keys/': newKey,
  'POST /api/api-keys': newKey,
  'PATCH /api/api-keys/:id': { ...key, ...newKey },
  'DELETE /api/api-keys/:id': key,
  'POST /api/api-keys/:id/regenerate': key,
  'POST /api/api-keys/:id/test': key,
  'POST /api/model-sources/': newSource,
  'POST /api/model-sources': newSource,
  'PATCH /api/model-sources/:id': { ...source, ...newSource },
  'POST /api/model-sources/:id': { ...source, ...newSource },
  'DELETE /api/model-sources/:id': source,
  'POST /api/model-sources/:id/delete': source,
  'POST /api/model-sources/:id/test': source,
  'POST /api/model-sources/:id/discover': { ...source, events: () => [] },
  'POST /api/alerts/channels': { fields: () => ({ kind: 'webhook', name: 'Other', 'target.url': `${HOOK}/2` }) },
  'PATCH /api/alerts/channels/:id': { ...channel, fields: () => ({ 'target.url': `${HOOK}/2` }), isSensitive: true },
  'POST /api/alerts/channels/:id': { ...channel, fields: () => ({ 'target.url': `${HOOK}/2` }), isSensitive: true },
  'DELETE /api/alerts/channels/:id': channel,
  'POST /api/alerts/channels/:id/delete': channel,
  'POST /api/alerts/channels/:id/test': channel,
  'POST /api/alerts/:key/acknowledge': { params: () => ({ key: INCIDENT.key }) },
  'POST /api/automations': { fields: () => ({ name: 'Nights', 'schedule.time': '03:00' }) },
  'PATCH /api/automations/:id': { ...automation, fields: () => ({ name: 'Noons' }) },
  'POST /api/automations/:id': { ...automation, fields: () => ({ name: 'Noons' }) },
  'DELETE /api/automations/:id': automation,
  'POST /api/automations/:id/delete': automation,
  'POST /api/automations/:id/run-now': automation,
  'POST /api/captures': { fields: ({ accountId }) => ({ accountId, minutes: 15 }) },
  'DELETE /api/captures/:id': capture,
  'DELETE /api/captures/:id/requests': capture,
  'DELETE /api/conversation-archive/:id': { params: (world) => ({ id: startCapture(world).requestId }) },
  'POST /api/key/session': { fields: ({ key }) => ({ secret: key.key }), open: 'anybody' },
  'POST /api/key/logout': keyHolder,
  'POST /api/key/secret': keyHolder,
  'POST /api/backups': {},
  [`POST ${EGRESS}/endpoints`]: {
    fields: () => ({ name: 'Second', scheme: 'socks5h', host: 'proxy.test', port: 1080 }),
  },
  [`PATCH ${EGRESS}/endpoints/:id`]: { ...endpoint, fields: () => ({ name: 'Renamed' }) },
  [`DELETE ${EGRESS}/endpoints/:id`]: endpoint,
  [`POST ${EGRESS}/endpoints/:id/test`]: endpoint,
  [`POST ${EGRESS}/pools`]: { fields: () => ({ name: 'Second' }) },
  [`PATCH ${EGRESS}/pools/:id`]: { ...pool, fields: () => ({ name: 'Renamed' }) },
  [`DELETE ${EGRESS}/pools/:id`]: pool,
  [`POST ${EGRESS}/pools/:id/members`]: { ...pool, fields: () => ({ endpointId: 'egr_b' }) },
  [`PATCH ${EGRESS}/pools/:id/members/:endpointId`]: { ...member, fields: () => ({ sortOrder: 3 }) },
  [`DELETE ${EGRESS}/pools/:id/members/:endpointId`]: member,
  [`PUT ${EGRESS}/accounts/:id/binding`]: { ...account, fields: () => ({ poolId: 'pool_a' }) },
  'POST /api/firewall/ips': { fields: () => ({ ipAddress: '198.51.100.1' }) },
  'DELETE /api/firewall/ips/:ip': { params: () => ({ ip: REMOTE }) },

  [`POST ${AUTH}/password/setup`]: { fields: password, open: 'anybody', ends: [409, 'password_already_configured'] },
  [`POST ${AUTH}/password/login`]: {
    fields: () => ({ username: 'inviter', password: PASSWORD }),
    open: 'anybody',
  },
  [`POST ${AUTH}/password/change`]: {
    fields: () => ({ currentPassword: PASSWORD, newPassword: 'another long one' }),
    open: 'account',
    held: null,
    proxied: NO_PASSWORD,
  },
  [`DELETE ${AUTH}/password`]: removal,
  [`POST ${AUTH}/password/remove`]: removal,
  [`POST ${AUTH}/guest/login`]: { fields: password, open: 'anybody' },
  [`POST ${AUTH}/guest/password`]: { fields: password },
  [`DELETE ${AUTH}/guest/password`]: {},
  [`POST ${AUTH}/guest/password/remove`]: {},
  [`POST ${AUTH}/guest/logout-all`]: {},
  [`POST ${AUTH}/totp/setup/start`]: { open: 'account', held: null },
  [`POST ${AUTH}/totp/setup/confirm`]: {
    fields: (world) => ({ secret: TOTP_SECRET, ...code(world) }),
    open: 'account',
    held: null,
  },
  [`POST ${AUTH}/totp/verify`]: {
    fields: code,
    open: 'account',
    hasTotp: true,
    half: null,
    held: [400, 'invalid_totp_code'],
    events: (_, kind) => (kind === 'half' ? ['login_success'] : kind === 'proxied' ? ['step_up_verified'] : []),
  },
  [`POST ${AUTH}/totp/disable`]: { fields: code, open: 'account', hasTotp: true },
  [`POST ${AUTH}/totp/recovery-codes`]: { hasTotp: true },
  [`POST ${AUTH}/step-up`]: { fields: password, open: 'account', proxied: [403, 'step_up_required'] },
  [`POST ${AUTH}/logout`]: {
    open: 'anybody',
    events: ({ sessionId }) => (sessionId === 'none' ? [] : ['logout']),
  },
  [`POST ${AUTH}/logout-all`]: { open: 'account', held: null },
  [`PATCH ${AUTH}/me`]: profile,
  [`POST ${AUTH}/me`]: profile,
  [`POST ${AUTH}/clock`]: { fields: () => ({ timeZone: 'Europe/Berlin' }) },

  [`POST ${AUTH}/passkeys/register/start`]: {},
  [`POST ${AUTH}/passkeys/register/finish`]: {
    fields: () => ({ name: 'Phone', ...forged({ attestationObject: 'oA' }) }),
    ends: REFUSED,
  },
  [`PATCH ${AUTH}/passkeys/:id`]: { ...passkey, fields: () => ({ name: 'Old phone' }) },
  [`DELETE ${AUTH}/passkeys/:id`]: passkey,
  [`POST ${AUTH}/passkeys/sign-in/start`]: { open: 'anybody' },
  [`POST ${AUTH}/passkeys/sign-in/finish`]: { fields: assertion, open: 'anybody', ends: REFUSED, isWrongSecret: true },
  [`POST ${AUTH}/passkeys/step-up/start`]: {},
  [`POST ${AUTH}/passkeys/step-up/finish`]: { fields: assertion, ends: REFUSED, isWrongSecret: true },
  [`DELETE ${AUTH}/sessions`]: {},
  [`DELETE ${AUTH}/sessions/:id`]: { params: (_, { sessionId }) => ({ id: sessionId }) },
  [`DELETE ${USERS}/:id/sessions/:sessionId`]: {
    params: ({ targetId, targetSession }) => ({ id: targetId, sessionId: targetSession }),
  },

  [`POST ${USERS}`]: { fields: () => ({ username: 'berta', role: 'plain' }) },
  [`PATCH ${USERS}/:id`]: { ...target, fields: () => ({ displayName: 'TestUser else' }) },
  [`DELETE ${USERS}/:id`]: target,
  [`POST ${USERS}/:id/invite`]: invited,
  [`DELETE ${USERS}/:id/invite`]: invited,
  [`POST ${USERS}/:id/reset-totp`]: target,
  [`POST ${USERS}/:id/revoke-sessions`]: target,
  [`POST ${USERS}/:id/reactivate-keys`]: target,
  [`POST ${AUTH}/invite/accept`]: { fields: () => ({ token: INVITE, password: PASSWORD }), open: 'stranger' },
  'POST /api/dashboard-roles': { fields: () => ({ name: 'Night shift', grants: 'dashboard:read' }) },
  'PATCH /api/dashboard-roles/:id': { ...role, fields: () => ({ name: 'Day shift' }) },
  'DELETE /api/dashboard-roles/:id': role,
  'POST /api/dashboard-roles/:id/clone': { ...role, fields: () => ({ name: 'Copy' }) },
  'PATCH /api/auth-providers/:id': {
    params: () => ({ id: 'idp_trusted_header' }),
    fields: () => ({ linkByEmail: true }),
  },
}
