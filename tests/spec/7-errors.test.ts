/** Spec §7, errors: the error formats, and one request for every code. */
import { describe, expect, test } from 'bun:test'
import type { Hono } from 'hono'
import { commit } from '../../db/commit.ts'
import type { AppEnv } from '../../src/boot/bindings.ts'
import { AppError, CODES, type Code } from '../../src/errors.ts'
import { noRoute } from '../../src/model/egress/route.ts'
import { storeShare } from '../../src/model/shares/share-rows.ts'
import { threadHash } from '../../src/proxy/pool/affinity.ts'
import { probe } from '../http/probe.ts'
import { used } from '../proxy/candidates.ts'
import { CAPABILITY, create, open, type SocketWorld, startSocketWorld } from '../sockets/ground.ts'
import { codexBody, getEvents, type TestApp, type TestOptions, testApp } from '../support/app.ts'
import { people } from '../support/people.ts'
import type { TestSocket } from '../support/socket-client.ts'
import type { SourceFault } from '../support/source/app.ts'
import { type Fault, faults } from '../support/upstream/faults.ts'
import type { PeopleCode } from './7-errors-people.test.ts'
import { dashboardProblem, modelProblem, problemAt } from './problems.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const PUBLIC = 'POST /v1/responses'
const EGRESS = '/api/settings/upstream-proxy'
const HELLO = { model: 'gpt-5.5', input: 'hello' }

interface Provocation {
  options?: TestOptions
  /** Answers with the error. The path decides which envelope it must have. */
  ask: (app: TestApp) => Promise<Response> | Response
  path: string
  status: number
}

/** Codes of turns that no other transport has: they come as an error frame. */
type OnSocket = 'turn_in_progress' | 'no_security_work_authorized_accounts'
/** Provoked in `proxy/sources` and in `sockets/sources`. */
type SourceCode = 'model_source_busy' | 'model_source_requires_http_transport' | 'usage_unavailable'
/** Provoked in `7-errors-people`, and for handshakes with a live call in `sockets/live`. */
type Elsewhere =
  | PeopleCode
  | SourceCode
  | 'upstream_websocket_handshake_failed'
  | 'upstream_websocket_subprotocol_mismatch'

const turn = (app: TestApp, headers: Record<string, string> = {}) => app.ask(NATIVE, { json: codexBody(), headers })

/** A turn on accounts that all answer with this fault. */
const faulty = (fault: Fault) => (app: TestApp) => {
  for (const { sim } of app.members) sim.always(fault)
  return settled(app, turn(app))
}

/** Moves the clock over back-offs and time limits until the answer is there. */
const settled = async (app: TestApp, asked: Promise<Response> | Response): Promise<Response> => {
  let answer: Response | null = null
  const waiting = Promise.resolve(asked).then((response) => {
    answer = response
  })
  for (let step = 0; step < 400 && answer === null; step++) await app.clock.advance('1s')
  await waiting
  return answer as unknown as Response // as: set by then
}

const dashboard = (route: string, json?: unknown, more: Record<string, unknown> = {}): Omit<Provocation, 'status'> => ({
  ask: (app) => app.ask(route, { json, ...more }),
  path: route.split(' ')[1] ?? '',
})

const SOURCE = { name: 'Rack', baseUrl: 'http://source.test/v1' }
const addSource = async (app: TestApp): Promise<string> => {
  const response = await app.ask('POST /api/model-sources/', { json: SOURCE })
  return ((await response.json()) as { id: string }).id // as: the response of the route
}
const discover = (fault: SourceFault) => async (app: TestApp) => {
  const id = await addSource(app)
  app.source.fail(fault)
  return app.ask(`POST /api/model-sources/${id}/discover`)
}
/** An automation with one field that is not valid. */
const automation = (field: Record<string, unknown>, schedule: Record<string, unknown> = {}): Provocation => ({
  ...dashboard('POST /api/automations', { name: 'x', schedule: { time: '07:55', ...schedule }, ...field }),
  status: 400,
})

const bearer = async (app: TestApp) => ({ authorization: `Bearer ${(await app.key()).key}` })
const join = (path: string) => async (app: TestApp) =>
  app.ask(`GET ${path}`, { headers: { ...(await bearer(app)), upgrade: 'websocket' } })

const PROVOCATIONS: Record<Exclude<Code, OnSocket | Elsewhere>, Provocation> = {
  invalid_request_error: { ask: (app) => app.ask(NATIVE, { json: [] }), path: '/backend-api', status: 400 },
  validation_error: { ...dashboard('PATCH /api/settings', { capacityWaitSeconds: 'soon' }), status: 422 },
  malformed_json: { ask: (app) => app.ask(PUBLIC, { body: '{"model":' }), path: '/v1', status: 400 },
  bad_host: { ask: (app) => app.ask('GET /v1/models', { headers: { host: 'a, b' } }), path: '/v1', status: 400 },
  payload_too_large: {
    ask: (app) => app.ask(PUBLIC, { body: '{}', headers: { 'content-length': String(2 ** 40) } }),
    path: '/v1',
    status: 413,
  },
  upload_timeout: {
    ask: (app) => settled(app, app.ask(PUBLIC, { body: new ReadableStream() })),
    path: '/v1',
    status: 408,
  },
  unsupported_encoding: {
    ask: (app) => app.ask(PUBLIC, { json: HELLO, headers: { 'content-encoding': 'compress' } }),
    path: '/v1',
    status: 400,
  },
  unsupported_media_type: {
    ...dashboard('PATCH /api/settings', undefined, { body: '<a/>', headers: { 'content-type': 'text/xml' } }),
    status: 415,
  },
  share_used_up: {
    ask: async (app) => {
      const { add } = people(app)
      const [borrower, lender] = [(await add({ role: 'member' })).row.id, (await add({ role: 'member' })).row.id]
      await commit(app.db, async (tx) => {
        await storeShare(tx, borrower, { fiveHourPercent: 0, weeklyPercent: null })
        await storeShare(tx, lender, { fiveHourPercent: 100, weeklyPercent: null })
      })
      await app.bindings.shares.reload()
      app.bindings.pool.observe(app.members[0]?.id ?? '', { ...used(10, 10), at: app.clock.now() })
      app.bindings.shares.begin(lender, { id: 'trn_lender', units: 5, isNew: true })
      const { key } = await app.key({ ownerUserId: borrower })
      return app.ask(NATIVE, { json: codexBody(), headers: { authorization: `Bearer ${key}` } })
    },
    path: '/backend-api',
    status: 429,
  },
  fast_mode_prohibited: {
    options: { settings: { prohibitFastMode: 'refuse' } },
    ask: (app) => app.ask(NATIVE, { json: codexBody('hello', { service_tier: 'priority' }) }),
    path: '/backend-api',
    status: 400,
  },
  unsupported_parameter: {
    ask: (app) =>
      app.ask('POST /v1/chat/completions', {
        json: { model: 'm', messages: [{ role: 'user', content: 'x' }], background: true },
      }),
    path: '/v1',
    status: 400,
  },
  invalid_auth_json: {
    ask: ({ ask }) => {
      const body = new FormData()
      body.set('auth_json', new File(['{}'], 'auth.json'))
      return ask('POST /api/accounts/import', { body, headers: formHeaders(body) })
    },
    path: '/api',
    status: 400,
  },
  invalid_import: {
    ask: ({ ask }) => {
      const body = new FormData()
      body.set('files', new File(['{}'], 'shopping.json'))
      return ask('POST /api/import/preflight', { body, headers: formHeaders(body) })
    },
    path: '/api',
    status: 400,
  },
  would_lock_out: {
    ask: async (app) => {
      const address = {
        kind: 'firewall',
        label: '10.9.9.9',
        verdict: 'new',
        reason: null,
        source: 0,
        result: null,
      } as const
      const item = { ...address, id: '0', content: { kind: 'firewall', address: '10.9.9.9' } } as const
      const { id } = app.bindings.importPlans.keep('bootstrap', {
        sources: [],
        items: [item],
        accountIds: new Map(),
        poolIds: new Map(),
        knownProxies: new Map(),
      })
      return app.ask(`POST /api/import/${id}`, { json: { items: ['0'] } })
    },
    path: '/api',
    status: 409,
  },
  invalid_callback: {
    ...dashboard('POST /api/oauth/manual-callback', { callbackUrl: '?code=a&state=b' }),
    status: 400,
  },
  oauth_flow_not_found: { ...dashboard('GET /api/oauth/status?flowId=flow_x'), status: 404 },
  import_not_found: { ...dashboard('POST /api/accounts/import/preflight/imp_x', { files: ['0'] }), status: 404 },
  device_auth_unavailable: {
    ask: (app) => {
      app.upstream.signIns.device.refusesWith = 404
      return app.ask('POST /api/oauth/start', { json: { forceMethod: 'device' } })
    },
    path: '/api',
    status: 502,
  },
  device_auth_failed: {
    ask: (app) => {
      app.upstream.signIns.device.refusesWith = 500
      return app.ask('POST /api/oauth/start', { json: { forceMethod: 'device' } })
    },
    path: '/api',
    status: 502,
  },
  invalid_model_source_payload: {
    ...dashboard('POST /api/model-sources/', { name: 'Rack', baseUrl: 'http://169.254.169.254/v1' }),
    status: 400,
  },
  name_taken: {
    ask: async (app) => {
      await addSource(app)
      return app.ask('POST /api/model-sources/', { json: SOURCE })
    },
    path: '/api',
    status: 409,
  },
  model_source_unreachable: { ask: discover('unreachable'), path: '/api', status: 502 },
  model_source_credentials_error: { ask: discover('forbidden'), path: '/api', status: 502 },
  model_source_error: { ask: discover('redirect'), path: '/api', status: 502 },
  invalid_upstream_response: { ask: discover('html'), path: '/api', status: 502 },
  invalid_ip: { ...dashboard('POST /api/firewall/ips', { ipAddress: '300.1.1.1' }), status: 400 },
  invalid_realtime_call_id: { ask: join('/v1/realtime?call_id=x'), path: '/v1', status: 400 },
  realtime_call_not_found: { ask: join('/v1/live/rtc_unknown'), path: '/v1', status: 404 },
  realtime_call_binding_failed: {
    ask: async (app) => {
      app.upstream.answerRelay(() => new Response('v=0', { status: 201 }))
      return app.ask('POST /v1/realtime/calls', { body: 'v=0', headers: await bearer(app) })
    },
    path: '/v1',
    status: 503,
  },
  realtime_live_unavailable: {
    options: { environment: { SLUICE_REALTIME_BASE_URL: 'http://127.0.0.1:1' } },
    ask: async (app) => {
      const headers = await bearer(app)
      app.upstream.answerRelay(
        () => new Response('v=0', { status: 201, headers: { location: '/v1/realtime/calls/rtc_a' } }),
      )
      await (await app.ask('POST /v1/realtime/calls', { body: 'v=0', headers })).text()
      return app.ask('GET /v1/live/rtc_a', { headers: { ...headers, upgrade: 'websocket' } })
    },
    path: '/v1',
    status: 503,
  },
  method_not_allowed: {
    ask: async (app) => app.ask('GET /mcp', { headers: await bearer(app) }),
    path: '/v1',
    status: 405,
  },
  upgrade_required: {
    options: { settings: { upstreamStreamTransport: 'http' } },
    ask: (app) => app.ask('GET /backend-api/codex/responses', { headers: { upgrade: 'websocket' } }),
    path: '/backend-api',
    status: 426,
  },
  bad_upgrade: {
    ask: (app) => app.ask('GET /v1/responses', { headers: { upgrade: 'websocket' } }),
    path: '/v1',
    status: 400,
  },
  invalid_api_key: {
    options: { settings: { apiKeyAuthEnabled: true } },
    ask: (app) => turn(app),
    path: '/v1',
    status: 401,
  },
  ip_forbidden: {
    ask: async (app) => {
      await app.ask('POST /api/firewall/ips', { json: { ipAddress: '192.0.2.1' } })
      return turn(app)
    },
    path: '/v1',
    status: 403,
  },
  model_not_allowed: {
    options: { settings: { apiKeyAuthEnabled: true } },
    ask: async (app) => app.ask(PUBLIC, { json: HELLO, headers: await withKey(app, { allowedModels: ['other'] }) }),
    path: '/v1',
    status: 403,
  },
  bootstrap_required: { ...dashboard('GET /api/settings', undefined, { peer: '203.0.113.9' }), status: 401 },
  cross_site_request_rejected: {
    ...dashboard('PATCH /api/settings', {}, { headers: { 'sec-fetch-site': 'cross-site' } }),
    status: 403,
  },
  required_capability_transport_unsupported: {
    ask: async (app) => turn(app, { ...(await withKey(app)), [CAPABILITY]: 'trusted_cyber' }),
    path: '/v1',
    status: 400,
  },
  unsupported_required_capability: {
    ask: async (app) => turn(app, { ...(await withKey(app)), [CAPABILITY]: 'other' }),
    path: '/v1',
    status: 400,
  },
  not_found: { ask: (app) => app.ask('GET /v1/nothing'), path: '/v1', status: 404 },
  account_not_found: { ...dashboard('DELETE /api/accounts/acc_unknown'), status: 404 },
  invalid_quota_planner: { ...dashboard('PUT /api/quota-planner/settings', { zone: 'Nowhere/Else' }), status: 400 },
  quota_planner_decision_not_found: {
    ...dashboard('POST /api/quota-planner/decisions/plan_none/cancel'),
    status: 400,
  },
  sticky_session_not_found: { ...dashboard('DELETE /api/sticky-sessions/conversation/a/b'), status: 404 },
  automation_not_found: { ...dashboard('DELETE /api/automations/auto_unknown'), status: 404 },
  automation_run_not_found: { ...dashboard('GET /api/automations/runs/run_unknown/details'), status: 404 },
  invalid_schedule_type: automation({}, { type: 'weekly' }),
  invalid_schedule_time: automation({}, { time: '24:00' }),
  invalid_schedule_timezone: automation({}, { timezone: 'Mars/Olympus' }),
  invalid_schedule_days: automation({}, { days: [] }),
  invalid_schedule_threshold: automation({}, { thresholdMinutes: 241 }),
  invalid_account_ids: automation({ accountIds: ['acc_unknown'] }),
  invalid_prompt: automation({ prompt: 'x'.repeat(1001) }),
  invalid_model: automation({ model: 'x'.repeat(201) }),
  invalid_reasoning_effort: automation({ reasoningEffort: 'enormous' }),
  ip_not_found: { ...dashboard('DELETE /api/firewall/ips/192.0.2.1'), status: 404 },
  model_not_found: {
    options: { settings: { apiKeyAuthEnabled: true } },
    ask: async (app) => turn(app, await withKey(app, { allowedModels: ['other'] })),
    path: '/v1',
    status: 404,
  },
  previous_response_not_found: {
    ask: (app) => app.ask(PUBLIC, { json: { ...HELLO, previous_response_id: 'resp_1' } }),
    path: '/v1',
    status: 400,
  },
  account_state_transition_invalid: {
    ask: async (app) => {
      app.members[0]?.sim.revoke('token_invalidated')
      await settled(app, turn(app))
      return app.ask(`POST /api/accounts/${app.members[0]?.id}/reactivate`)
    },
    path: '/api',
    status: 409,
  },
  account_not_probable: {
    ask: async ({ ask, members }) => {
      await ask(`POST /api/accounts/${members[0]?.id}/pause`)
      return ask(`POST /api/accounts/${members[0]?.id}/probe`, { json: {} })
    },
    path: '/api',
    status: 409,
  },
  warmup_ineligible: { ask: (app) => app.ask('POST /v1/warmup/strict'), path: '/v1', status: 400 },
  capture_conflict: {
    ask: async (app) => {
      const json = { keyId: (await app.key()).row.id, minutes: 15 }
      await app.ask('POST /api/captures', { json })
      return app.ask('POST /api/captures', { json })
    },
    path: '/api',
    status: 409,
  },
  window_start_refused: {
    ask: ({ ask, members }) => ask(`PUT /api/accounts/${members[0]?.id}/limit-warmup`, { json: { enabled: true } }),
    path: '/api',
    status: 409,
  },
  account_not_reset_credit_applicable: {
    ask: async ({ ask, members }) => {
      await ask(`POST /api/accounts/${members[0]?.id}/pause`)
      return ask(`POST /api/accounts/${members[0]?.id}/rate-limit-reset-credits/consume`, { json: {} })
    },
    path: '/api',
    status: 409,
  },
  no_available_reset_credit: {
    ask: ({ ask, members }) =>
      ask(`POST /api/accounts/${members[0]?.id}/rate-limit-reset-credits/consume`, { json: {} }),
    path: '/api',
    status: 409,
  },
  reset_credit_redeem_in_progress: {
    ask: async (app) => {
      const consume = () =>
        app.ask(`POST /api/accounts/${app.members[0]?.id}/rate-limit-reset-credits/consume`, { json: {} })
      app.members[0]?.sim.next({ on: 'reset-credits', delayHeadersMs: 5000 })
      const first = consume()
      const second = await consume()
      await settled(app, first)
      return second
    },
    path: '/api',
    status: 409,
  },
  target_reset_credit_changed: {
    ask: async (app) => {
      const json = { account_id: app.members[0]?.id, redeem_id: 'gone' }
      return app.ask('POST /v1/reset-credit', { json, headers: await withKey(app) })
    },
    path: '/v1',
    status: 409,
  },
  account_outside_pool: {
    options: { accounts: 2 },
    ask: async (app) => {
      const [first, second] = app.members.map(({ id }) => id)
      const json = { account_id: first, redeem_id: 'c1' }
      return app.ask('POST /v1/reset-credit', {
        json,
        headers: await withKey(app, { assignedAccountIds: [second ?? ''] }),
      })
    },
    path: '/v1',
    status: 403,
  },
  ip_exists: {
    ask: async ({ ask }) => {
      await ask('POST /api/firewall/ips', { json: { ipAddress: '127.0.0.1' } })
      return ask('POST /api/firewall/ips', { json: { ipAddress: '127.0.0.1/32' } })
    },
    path: '/api',
    status: 409,
  },
  settings_conflict: {
    ...dashboard('PATCH /api/settings', { expectedVersion: 99, capacityWaitSeconds: 1 }),
    status: 409,
  },
  rate_limit_exceeded: {
    options: { settings: { apiKeyAuthEnabled: true } },
    ask: async (app) => {
      const limits = [{ limitType: 'requests', limitWindow: 'daily', maxValue: 1, modelFilter: '' }] as const
      const headers = await withKey(app, { limits: [...limits] })
      await (await turn(app, headers)).text()
      return turn(app, headers)
    },
    path: '/v1',
    status: 429,
  },
  usage_limit_reached: {
    ask: faulty(faults.usageLimit({ resetsAt: Date.UTC(2026, 0, 1, 2) })),
    path: '/v1',
    status: 429,
  },
  too_many_sockets: {
    options: { settings: { socketsPerClient: 1 } },
    ask: (app) => {
      app.bindings.seats.take([{ of: 'socket client 127.0.0.1', most: 1 }])
      return app.ask('GET /v1/responses', { headers: { upgrade: 'websocket' } })
    },
    path: '/v1',
    status: 429,
  },
  account_stream_cap: {
    options: { settings: { proxyAccountStreamLimit: 1, capacityWaitSeconds: 0 } },
    ask: async (app) => {
      app.members[0]?.sim.next({ silence: { afterEvents: 5 } })
      await turn(app)
      return settled(app, turn(app))
    },
    path: '/v1',
    status: 429,
  },
  egress_unavailable: {
    ask: async (app) => {
      const proxy = { name: 'Down', scheme: 'http', host: '127.0.0.1', port: 1 }
      const { id } = (await (await app.ask(`POST ${EGRESS}/endpoints`, { json: proxy })).json()) as { id: string }
      const pool = { name: 'Down', endpointIds: [id] }
      const { id: poolId } = (await (await app.ask(`POST ${EGRESS}/pools`, { json: pool })).json()) as { id: string }
      await app.ask(`PUT ${EGRESS}/accounts/${app.members[0]?.id}/binding`, { json: { poolId } })
      app.wire.before = async () => {
        throw noRoute('endpoints_unreachable')
      }
      return turn(app) // connecting takes real time, so the clock does not move
    },
    path: '/backend-api',
    status: 503,
  },
  proxy_endpoint_not_found: { ...dashboard(`POST ${EGRESS}/endpoints/egr_gone/test`), status: 400 },
  proxy_password_required: {
    ask: async (app) => {
      const proxy = { name: 'Known', scheme: 'http', host: 'proxy.test', port: 8080, password: 'secret' }
      const { id } = (await (await app.ask(`POST ${EGRESS}/endpoints`, { json: proxy })).json()) as { id: string }
      return app.ask(`PATCH ${EGRESS}/endpoints/${id}`, { json: { host: 'other.test' } })
    },
    path: EGRESS,
    status: 400,
  },
  proxy_pool_not_found: { ...dashboard(`PATCH ${EGRESS}/pools/pool_gone`, { isActive: false }), status: 400 },
  proxy_pool_member_duplicate: {
    ...dashboard(`POST ${EGRESS}/pools`, { name: 'Same twice', endpointIds: ['egr_a', 'egr_a'] }),
    status: 400,
  },
  proxy_pool_in_use: {
    ask: async (app) => {
      const { id } = (await (await app.ask(`POST ${EGRESS}/pools`, { json: { name: 'Used' } })).json()) as {
        id: string
      }
      await app.ask(`PUT ${EGRESS}/accounts/${app.members[0]?.id}/binding`, { json: { poolId: id } })
      return app.ask(`DELETE ${EGRESS}/pools/${id}`)
    },
    path: EGRESS,
    status: 409,
  },
  no_accounts: { options: { accounts: 0 }, ask: (app) => app.ask(PUBLIC, { json: HELLO }), path: '/v1', status: 503 },
  no_plan_support_for_model: {
    options: { accounts: [{ plan: 'free' }] },
    ask: (app) => app.ask('POST /v1/images/generations', { json: { prompt: 'A square' } }),
    path: '/v1',
    status: 503,
  },
  continuity_owner_unavailable: {
    options: { accounts: 2 },
    ask: async (app) => {
      const conversation = { 'session-id': 'thread-1' }
      const events = await getEvents(await turn(app, conversation))
      const reasoning = events.find(({ type }) => type === 'response.output_item.done')?.item // comes first
      await app.ask(`POST /api/accounts/${(await app.rows())[0]?.accountId}/pause`)
      const input = [{ ...(reasoning as object), type: 'compaction' }, ...codexBody().input]
      return app.ask(NATIVE, { json: codexBody('', { input }), headers: conversation })
    },
    path: '/v1',
    status: 400,
  },
  file_owner_unavailable: {
    ask: (app) => app.ask('POST /backend-api/files/file_unknown/uploaded'),
    path: '/backend-api/codex',
    status: 502,
  },
  continuity_owner_conflict: {
    options: { accounts: 2 },
    ask: (app) => {
      const { affinity, clock } = app.bindings
      for (const [index, { id }] of app.members.entries())
        affinity.remember('file', threadHash(`file-${index}`, null), id, { now: clock.now(), mixed: false })
      const content = ['file-0', 'file-1'].map((file_id) => ({ type: 'input_file', file_id }))
      return app.ask(NATIVE, { json: codexBody('', { input: [{ type: 'message', role: 'user', content }] }) })
    },
    path: '/backend-api/codex',
    status: 502,
  },
  upstream_blocked: {
    ask: (app) => {
      app.members[0]?.sim.always({ on: 'file', ...faults.forbiddenHtml() })
      return app.ask('POST /backend-api/files', { json: { file_name: 'a', file_size: 1, use_case: 'codex' } })
    },
    path: '/backend-api/codex',
    status: 502,
  },
  busy: {
    ask: (app) => {
      app.bindings.bodies.grow(app.bindings.bodies.open(0), 2 ** 40)
      return turn(app)
    },
    path: '/v1',
    status: 503,
  },
  draining: {
    ask: (app) => {
      app.bindings.lifecycle.draining = true
      return turn(app)
    },
    path: '/v1',
    status: 503,
  },
  upstream_error: { ask: faulty(faults.badGatewayHtml()), path: '/v1', status: 502 },
  upstream_unreachable: { ask: faulty({ reset: true }), path: '/v1', status: 502 },
  upstream_timeout: { ask: (app) => lateFailure(app, { delayFirstEventMs: 10_000_000 }), path: '/v1', status: 504 },
  upstream_auth_failed: {
    ask: (app) => {
      app.members[0]?.sim.always(faults.unauthorized())
      app.members[0]?.sim.always({ ...faults.serverError(), on: 'token' })
      return settled(app, turn(app))
    },
    path: '/v1',
    status: 502,
  },
  stream_incomplete: { ask: faulty({ dropAfter: { events: 1, how: 'fin' } }), path: '/v1', status: 502 },
  database_unavailable: {
    ask: (app) => {
      app.sqlite.run('PRAGMA query_only = ON')
      return app.ask('PATCH /api/settings', { json: { capacityWaitSeconds: 7 } })
    },
    path: '/api/settings',
    status: 503,
  },
  internal_error: {
    ask: (app) => {
      app.bindings.pool.lease = () => Promise.reject(new Error('a fault of ours'))
      return turn(app)
    },
    path: '/v1',
    status: 500,
  },
}

const ON_SOCKET: Record<OnSocket, { status: number; say: (service: SocketWorld) => Promise<TestSocket> }> = {
  turn_in_progress: {
    status: 409,
    say: async (service) => {
      service.members[0]?.sim.next({ silence: { afterEvents: 0 } })
      const socket = await open(service)
      for (let turns = 0; turns < 3; turns++) socket.send(create())
      return socket
    },
  },
  no_security_work_authorized_accounts: {
    status: 400,
    say: async (service) => {
      const headers = { authorization: `Bearer ${(await service.key()).key}`, [CAPABILITY]: 'trusted_cyber' }
      const socket = await open(service, { headers })
      socket.send(create())
      return socket
    },
  },
}

const withKey = async (app: TestApp, input: Parameters<TestApp['key']>[0] = {}): Promise<Record<string, string>> => ({
  authorization: `Bearer ${(await app.key(input)).key}`,
})

/** A JSON answer sends no headers before the result, so that a late failure still has its status. */
const lateFailure = (app: TestApp, fault: Fault): Promise<Response> => {
  for (const { sim } of app.members) sim.always(fault)
  return settled(app, app.ask(PUBLIC, { json: HELLO }))
}

/** The test harness sends `application/json` by default; a form needs its own boundary. */
const formHeaders = (body: FormData): Record<string, string> => {
  const type = new Response(body).headers.get('content-type') ?? ''
  return { 'content-type': type }
}

describe('§7 every code can be returned, with its status and its format', () => {
  for (const [code, { options = {}, ask, path, status }] of Object.entries(PROVOCATIONS))
    test(code, async () => {
      const app = await testApp(options)
      const response = await ask(app)
      const problem = await problemAt(path, response)
      expect([problem.code, response.status]).toEqual([code, status])
      expect(response.headers.get('x-request-id')).toBeString()
      expect(problem.message).toMatch(/^.{5,}$/)
    })
})

describe('§7 the codes of sockets come as an error frame with the status, in the same format', () => {
  for (const [code, { status, say }] of Object.entries(ON_SOCKET))
    test(code, async () => {
      await using service = await startSocketWorld()
      const socket = await say(service)
      const { type, ...frame } = await socket.next()
      expect(type).toBe('error')
      expect(frame).toMatchObject({
        status,
        error: { code, message: expect.stringMatching(/^.{5,}$/), type: expect.any(String), param: null },
      })
      socket.terminate()
    })
})

describe('§7 permission failures', () => {
  test.each(['permission_required', 'read_only_access', 'step_up_required'] as const)('%s is a 403', (code) => {
    expect(CODES[code][0]).toBe(403)
  })

  test('the body is {error: {code, message, param}}, and param names the missing permission', async () => {
    const { ask } = probe((app: Hono<AppEnv>) => {
      app.get('/api/thing', () => {
        throw new AppError('permission_required', { param: 'security:write' })
      })
    })
    const response = await ask('GET /api/thing')
    expect(response.status).toBe(403)
    const problem = await dashboardProblem(response)
    expect(Object.keys(problem).toSorted()).toEqual(['code', 'message', 'param'])
    expect(problem).toMatchObject({ code: 'permission_required', param: 'security:write' })
  })

  test('step-up names the methods in details', async () => {
    const { ask } = probe((app: Hono<AppEnv>) => {
      app.get('/api/thing', () => {
        throw new AppError('step_up_required', { details: { methods: ['password'] } })
      })
    })
    expect((await dashboardProblem(await ask('GET /api/thing'))).details).toEqual({ methods: ['password'] })
  })
})

describe('§7 model routes answer in the error format of their clients', () => {
  test('with every member the SDKs type', async () => {
    const { ask } = await testApp({ settings: { apiKeyAuthEnabled: true } })
    const response = await ask('GET /v1/models')
    expect(await modelProblem(response)).toEqual({
      message: 'Missing API key in Authorization header',
      type: 'authentication_error',
      code: 'invalid_api_key',
      param: null,
    })
  })

  test.each([
    'busy',
    'draining',
    'too_many_sockets',
    'account_stream_cap',
    'usage_limit_reached',
    'rate_limit_exceeded',
  ] as const)('%s states the retry time', async (code) => {
    const { options, ask } = PROVOCATIONS[code]
    const response = await ask(await testApp(options))
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  })

  test('no error shows an upstream token, an account or a stack', async () => {
    for (const code of ['upstream_error', 'upstream_auth_failed', 'internal_error', 'upstream_unreachable'] as const) {
      const app = await testApp()
      const text = await (await PROVOCATIONS[code].ask(app)).text()
      const sim = app.members[0]!.sim
      for (const secret of [
        sim.accessToken,
        sim.refreshToken,
        sim.email,
        sim.chatgptAccountId,
        'a fault of ours',
        'src/',
      ])
        expect(text).not.toContain(secret)
    }
  })
})
