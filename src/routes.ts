/** THE TABLE: every method, path and gate of the service on one page, in three blocks: model traffic, JSON API, pages. */
import type { Hono } from 'hono'
import {
  deleteAccount,
  editAccount,
  importAccounts,
  listAccounts,
  pauseAccount,
  probeAccount,
  reactivateAccount,
  setAlias,
  setRoutingPolicy,
} from './admin/accounts.ts'
import { createApiKey, deleteApiKey, editApiKey, listApiKeys, regenerateApiKey } from './admin/api-keys.ts'
import { addFirewallEntry, removeFirewallEntry, showFirewall } from './admin/firewall.ts'
import { live, ready, startup } from './admin/health.ts'
import { goToDashboard, showOverview } from './admin/overview.ts'
import { listRequestOptions, listRequests, showRequest } from './admin/requests.ts'
import { changeSettings, getSettings } from './admin/settings.ts'
import type { AppEnv } from './bindings.ts'
import { serveAsset } from './http/assets.ts'
import { chatCompletions } from './proxy/handlers/chat.ts'
import { nativeCompact, publicCompact } from './proxy/handlers/compact.ts'
import { listResetCredits, showKeyUsage } from './proxy/handlers/key-usage.ts'
import { nativeModels, publicModel, publicModels } from './proxy/handlers/models.ts'
import { notBuilt } from './proxy/handlers/not-built.ts'
import { nativeResponses, publicResponses } from './proxy/handlers/responses.ts'
import { nativeSocket, publicSocket } from './proxy/handlers/sockets.ts'

export const mountRoutes = (app: Hono<AppEnv>): void => {
  mountNativeTraffic(app)
  mountPublicTraffic(app)
  mountApi(app)
  mountPages(app)
}

/** `/backend-api`, `/api/codex`: the native client and its extension. */
const mountNativeTraffic = (app: Hono<AppEnv>): void => {
  app.post('/backend-api/codex/responses', ...nativeResponses)
  app.post('/backend-api/codex/responses/', ...nativeResponses)
  app.get('/backend-api/codex/responses', ...nativeSocket)
  app.post('/backend-api/codex/responses/compact', ...nativeCompact)
  app.get('/backend-api/codex/models', ...nativeModels)
  app.get('/backend-api/codex/opportunistic/admission', ...notBuilt('optional', 'refuse'))
  app.get('/backend-api/codex/thread/goal/get', ...notBuilt('optional', 'refuse'))
  app.post('/backend-api/codex/thread/goal/get', ...notBuilt('optional', 'refuse'))
  app.post('/backend-api/codex/thread/goal/set', ...notBuilt('optional', 'refuse'))
  app.post('/backend-api/codex/thread/goal/clear', ...notBuilt('optional', 'refuse'))
  app.post('/backend-api/codex/analytics-events/events', ...notBuilt('optional', 'refuse'))
  app.post('/backend-api/codex/memories/trace_summarize', ...notBuilt('optional', 'refuse'))
  app.post('/backend-api/codex/safety/arc', ...notBuilt('optional', 'refuse'))
  app.post('/backend-api/codex/alpha/search', ...notBuilt('optional', 'refuse'))
  app.get('/backend-api/codex/agent-identities/jwks', ...notBuilt('optional', 'refuse'))
  app.get('/backend-api/wham/agent-identities/jwks', ...notBuilt('optional', 'refuse'))
  app.post('/backend-api/codex/realtime/calls', ...notBuilt('always', 'refuse'))
  app.post('/backend-api/codex/images/generations', ...notBuilt('optional', 'refuse'))
  app.post('/backend-api/codex/images/edits', ...notBuilt('optional', 'refuse'))
  app.post('/backend-api/transcribe', ...notBuilt('optional', 'refuse'))
  app.post('/backend-api/files', ...notBuilt('optional', 'refuse'))
  app.post('/backend-api/files/:id/uploaded', ...notBuilt('optional', 'refuse'))
  app.get(
    '/backend-api/codex/:callId{rtc_[A-Za-z0-9._~-]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}}',
    ...notBuilt('always', 'refuse'),
  )
  app.get('/api/codex/usage', ...notBuilt('always', 'local'))
  app.get('/api/codex/usage/', ...notBuilt('always', 'local'))
  app.post('/api/codex/rate-limit-reset-credits/consume', ...notBuilt('always', 'refuse'))
  app.post('/api/codex/rate-limit-reset-credits/consume/', ...notBuilt('always', 'refuse'))
}

/** `/v1`, `/api/fleet`: OpenAI SDKs and tools that speak like them. */
const mountPublicTraffic = (app: Hono<AppEnv>): void => {
  app.post('/v1/responses', ...publicResponses)
  app.post('/v1/responses/', ...publicResponses)
  app.get('/v1/responses', ...publicSocket)
  app.post('/v1/responses/compact', ...publicCompact)
  app.get('/v1/responses/:id', ...notBuilt('optional', 'refuse'))
  app.delete('/v1/responses/:id', ...notBuilt('optional', 'refuse'))
  app.get('/v1/responses/:id/input_items', ...notBuilt('optional', 'refuse'))
  app.post('/v1/chat/completions', ...chatCompletions)
  app.get('/v1/models', ...publicModels)
  app.get('/v1/models/:id', ...publicModel)
  app.post('/v1/embeddings', ...notBuilt('optional', 'refuse'))
  app.post('/v1/images/generations', ...notBuilt('optional', 'refuse'))
  app.post('/v1/images/edits', ...notBuilt('optional', 'refuse'))
  app.post('/v1/images/variations', ...notBuilt('optional', 'refuse'))
  app.post('/v1/audio/transcriptions', ...notBuilt('optional', 'refuse'))
  app.post('/v1/warmup', ...notBuilt('optional', 'refuse'))
  app.post('/v1/warmup/:mode', ...notBuilt('optional', 'refuse'))
  app.get('/v1/usage', ...showKeyUsage)
  app.get('/v1/reset-credit', ...listResetCredits)
  app.post('/v1/reset-credit', ...notBuilt('always', 'refuse'))
  app.get('/v1/live/:callId', ...notBuilt('always', 'refuse'))
  app.get('/v1/realtime', ...notBuilt('always', 'refuse'))
  app.get('/api/fleet/summary', ...notBuilt('always', 'refuse'))
  app.get('/api/fleet/observability', ...notBuilt('always', 'refuse'))
  app.post('/api/fleet/refresh', ...notBuilt('always', 'refuse'))
}

/** The control plane. */
const mountApi = (app: Hono<AppEnv>): void => {
  app.get('/api/settings', ...getSettings)
  app.put('/api/settings', ...changeSettings)
  app.patch('/api/settings', ...changeSettings)
  app.get('/api/accounts', ...listAccounts)
  app.post('/api/accounts/import', ...importAccounts)
  app.patch('/api/accounts/:id', ...editAccount)
  app.delete('/api/accounts/:id', ...deleteAccount)
  app.post('/api/accounts/:id/pause', ...pauseAccount)
  app.post('/api/accounts/:id/reactivate', ...reactivateAccount)
  app.post('/api/accounts/:id/probe', ...probeAccount)
  app.put('/api/accounts/:id/alias', ...setAlias)
  app.put('/api/accounts/:id/routing-policy', ...setRoutingPolicy)
  app.get('/api/api-keys/', ...listApiKeys)
  app.get('/api/api-keys', ...listApiKeys)
  app.post('/api/api-keys/', ...createApiKey)
  app.post('/api/api-keys', ...createApiKey)
  app.patch('/api/api-keys/:id', ...editApiKey)
  app.delete('/api/api-keys/:id', ...deleteApiKey)
  app.post('/api/api-keys/:id/regenerate', ...regenerateApiKey)
  app.get('/api/firewall/ips', ...showFirewall)
  app.post('/api/firewall/ips', ...addFirewallEntry)
  app.delete('/api/firewall/ips/:ip', ...removeFirewallEntry)
  app.get('/api/request-logs', ...listRequests)
  app.get('/api/request-logs/options', ...listRequestOptions)
  app.get('/api/request-logs/:id', ...showRequest)
}

const mountPages = (app: Hono<AppEnv>): void => {
  app.get('/', ...goToDashboard)
  app.get('/dashboard', ...showOverview)
  app.get('/assets/:file', ...serveAsset)
  app.get('/health', ...live)
  app.get('/health/live', ...live)
  app.get('/health/ready', ...ready)
  app.get('/health/startup', ...startup)
}
