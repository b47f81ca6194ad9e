/** THE TABLE of dashboard routes: every method, path and gate of the JSON API and the pages. See also `gateway-routes.ts`. */
import type { Hono } from 'hono'
import {
  deleteAccount,
  editAccount,
  pauseAccount,
  reactivateAccount,
  setAlias,
  setRoutingPolicy,
  showAccount,
  showAccountTrends,
} from '../admin/accounts/account.ts'
import {
  changeTags,
  deleteAccounts,
  pauseAccounts,
  reactivateAccounts,
  setRoutingPolicies,
} from '../admin/accounts/bulk.ts'
import { exportAccounts, exportAuth } from '../admin/accounts/export.ts'
import { importAccounts, importChosen, preflightImport } from '../admin/accounts/import.ts'
import { listAccounts, showAccounts } from '../admin/accounts/list.ts'
import {
  cancelSignIn,
  completeSignIn,
  pasteCallback,
  showBrowserSignIn,
  showDeviceSignIn,
  showImport,
  showSignIn,
  startSignIn,
} from '../admin/accounts/new.ts'
import { probeAccount, probeAccounts } from '../admin/accounts/probe.ts'
import { consumeResetCredit, listAccountResetCredits } from '../admin/accounts/reset-credits.ts'
import { showStatement } from '../admin/accounts/statement.ts'
import { setWindowStart } from '../admin/accounts/window.ts'
import { showAuditLog } from '../admin/audit.ts'
import { createBackup, downloadBackup, listBackups } from '../admin/backups.ts'
import { listConversations, showConversation, showConversationPage, showConversations } from '../admin/conversations.ts'
import { documentation } from '../admin/docs.ts'
import {
  showDoctor,
  showKeyTestChecks,
  socketForBrowser,
  streamForBrowser,
  uploadFromBrowser,
} from '../admin/doctor.ts'
import { explainChoice, leadToSimulator, showSimulator } from '../admin/explain.ts'
import { addFirewallEntry, removeFirewallEntry, showFirewall } from '../admin/firewall.ts'
import { showGuide, showGuides } from '../admin/guides.ts'
import { planImport, runImport, showImportPlan } from '../admin/import.ts'
import {
  createApiKey,
  deleteApiKey,
  editApiKey,
  goToKeys,
  listApiKeys,
  regenerateApiKey,
  showEditKey,
  showKey,
  showKeys,
  showKeyTrends,
  showKeyUsage7d,
  showNewKey,
} from '../admin/keys/keys.ts'
import { testApiKey } from '../admin/keys/test.ts'
import { streamChanges } from '../admin/live.ts'
import { exportLogs, exportRequestLogs } from '../admin/logs/export.ts'
import {
  listRejectedClients,
  listRequestOptions,
  listRequests,
  showLogs,
  showRequest,
  showRequestPage,
  tailLogs,
} from '../admin/logs/logs.ts'
import { showMetrics } from '../admin/metrics.ts'
import { goToDashboard, showOverview } from '../admin/overview.ts'
import { privacyEye } from '../admin/privacy.ts'
import { getReport, showReports } from '../admin/reports.ts'
import { showAbout } from '../admin/settings/about.ts'
import { searchSettings } from '../admin/settings/search.ts'
import { changeSettings, getSettings, putSettings } from '../admin/settings/settings.ts'
import { showData, showNetwork, showRouting, showTableSizes } from '../admin/settings/tabs.ts'
import { showFooter, showPalette } from '../admin/shell.ts'
import { compareStrategies, showStrategies } from '../admin/strategies.ts'
import { showUsageHistory, showUsageSummary, showUsageWindow } from '../admin/usage.ts'
import type { AppEnv } from '../boot/bindings.ts'
import { serveAsset } from '../http/assets.ts'
import { refreshFleet, showFleet, showFleetActivity } from '../proxy/handlers/fleet.ts'
import { consumeNativeResetCredit, showNativeUsage } from '../proxy/handlers/native-usage.ts'
import { gateway } from './gateway.ts'
import { mountManaged } from './managed-routes.ts'
import { mountPasskeys, mountPeople, mountPeoplePages, mountSignIn } from './people-routes.ts'

export const mountDashboard = (app: Hono<AppEnv>): void => {
  app.use(privacyEye)
  mountClientApi(app)
  mountApi(app)
  mountSignIn(app)
  mountPasskeys(app)
  mountPeople(app)
  mountOAuth(app)
  mountOperations(app)
  mountDocs(app)
  mountAccountPages(app)
  mountKeyPages(app)
  mountManaged(app) // before `/logs/:id`
  mountLogPages(app)
  mountSettingsPages(app)
  mountLive(app)
  mountPages(app)
  mountPeoplePages(app)
}

/** The control plane. */
const mountApi = (app: Hono<AppEnv>): void => {
  app.get('/api/settings', ...getSettings)
  app.put('/api/settings', ...putSettings)
  app.patch('/api/settings', ...changeSettings)
  app.get('/api/accounts', ...listAccounts)
  app.post('/api/accounts/import', ...importAccounts)
  app.patch('/api/accounts/:id', ...editAccount)
  app.delete('/api/accounts/:id', ...deleteAccount)
  app.post('/api/accounts/:id/pause', ...pauseAccount)
  app.post('/api/accounts/:id/reactivate', ...reactivateAccount)
  app.post('/api/accounts/:id/probe', ...probeAccount)
  app.put('/api/accounts/:id/alias', ...setAlias)
  app.put('/api/accounts/:id/limit-warmup', ...setWindowStart)
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
  app.get('/api/usage/summary', ...showUsageSummary)
  app.get('/api/usage/history', ...showUsageHistory)
  app.get('/api/usage/window', ...showUsageWindow)
  app.get('/api/request-logs', ...listRequests)
  app.get('/api/request-logs/options', ...listRequestOptions)
  app.get('/api/request-logs/export', ...exportRequestLogs)
  app.get('/api/request-logs/:id', ...showRequest)
  app.get('/api/rejected-clients', ...listRejectedClients)
}

/** Adding an account: ChatGPT sign-ins and import previews. */
const mountOAuth = (app: Hono<AppEnv>): void => {
  app.post('/api/oauth/start', ...startSignIn)
  app.get('/api/oauth/status', ...showSignIn)
  app.post('/api/oauth/complete', ...completeSignIn)
  app.post('/api/oauth/manual-callback', ...pasteCallback)
  app.post('/api/oauth/cancel', ...cancelSignIn)
  app.post('/api/accounts/import/preflight', ...preflightImport)
  app.post('/api/accounts/import/preflight/:id', ...importChosen)
  app.post('/api/import/preflight', ...planImport)
  app.post('/api/import/:id', ...runImport)
  app.get('/accounts/import', ...showImportPlan)
  app.get('/accounts/simulator', ...showSimulator)
  app.get('/accounts/new', ...showBrowserSignIn)
  app.get('/accounts/new/browser', ...showBrowserSignIn)
  app.get('/accounts/new/device', ...showDeviceSignIn)
  app.get('/accounts/new/import', ...showImport)
}

/** `/metrics`, backups, the doctor. */
const mountOperations = (app: Hono<AppEnv>): void => {
  app.get('/metrics', ...showMetrics)
  app.get('/api/backups', ...listBackups)
  app.post('/api/backups', ...createBackup)
  app.get('/api/backups/:name', ...downloadBackup)
  app.get('/api/doctor', ...showDoctor)
  app.get('/doctor', ...showDoctor)
  app.get('/doctor/checks', ...showKeyTestChecks)
  app.get('/doctor/stream', ...streamForBrowser)
  app.get('/doctor/socket', ...socketForBrowser)
  app.post('/doctor/upload', ...uploadFromBrowser)
}

/** The API as a page and as a document, both generated from this table. */
const mountDocs = (app: Hono<AppEnv>): void => {
  const { showOpenApi, showDocs } = documentation([gateway, app])
  app.get('/api/openapi.json', ...showOpenApi)
  app.get('/docs', ...showGuides)
  app.get('/docs/api', ...showDocs)
  app.get('/docs/:guide', ...showGuide)
}

/** `/accounts` and its detail pages. */
const mountAccountPages = (app: Hono<AppEnv>): void => {
  app.get('/accounts', ...showAccounts)
  app.get('/accounts/:id', ...showAccount)
  app.post('/api/accounts/pause', ...pauseAccounts)
  app.post('/api/accounts/reactivate', ...reactivateAccounts)
  app.post('/api/accounts/routing-policy', ...setRoutingPolicies)
  app.post('/api/accounts/tags', ...changeTags)
  app.post('/api/accounts/probe', ...probeAccounts)
  app.post('/api/accounts/export', ...exportAccounts)
  app.post('/api/accounts/delete', ...deleteAccounts)
  app.get('/api/accounts/:id/trends', ...showAccountTrends)
  app.get('/api/accounts/:id/statement', ...showStatement)
  app.post('/api/accounts/:id/export/auth', ...exportAuth)
  app.get('/api/accounts/:id/rate-limit-reset-credits', ...listAccountResetCredits)
  app.post('/api/accounts/:id/rate-limit-reset-credits/consume', ...consumeResetCredit)
}

/** `/keys`, connecting a client, and testing a key. */
const mountKeyPages = (app: Hono<AppEnv>): void => {
  app.get('/keys', ...showKeys)
  app.get('/apis', ...goToKeys)
  app.get('/keys/new', ...showNewKey)
  app.get('/keys/:id', ...showKey)
  app.get('/keys/:id/edit', ...showEditKey)
  app.get('/api/api-keys/:id/trends', ...showKeyTrends)
  app.get('/api/api-keys/:id/usage-7d', ...showKeyUsage7d)
  app.post('/api/api-keys/:id/test', ...testApiKey((request, env) => gateway.fetch(request, env)))
}

/** `/logs`, `/reports`, and the routing simulator. */
const mountLogPages = (app: Hono<AppEnv>): void => {
  app.get('/logs', ...showLogs)
  app.get('/logs/tail', ...tailLogs)
  app.get('/logs/export', ...exportLogs)
  app.get('/logs/explain', ...leadToSimulator)
  app.get('/logs/conversations', ...showConversations)
  app.get('/logs/conversations/:hash', ...showConversationPage)
  app.get('/api/conversations', ...listConversations)
  app.get('/api/conversations/', ...listConversations)
  app.get('/api/conversations/:hash', ...showConversation)
  app.get('/logs/:id', ...showRequestPage)
  app.get('/reports', ...showReports)
  app.get('/reports/strategies', ...showStrategies)
  app.get('/api/explain', ...explainChoice)
  app.get('/api/reports', ...getReport)
  app.get('/api/reports/strategies', ...compareStrategies)
}

/** One URL per tab. */
const mountSettingsPages = (app: Hono<AppEnv>): void => {
  app.get('/settings/routing', ...showRouting)
  app.get('/settings/network', ...showNetwork)
  app.get('/settings/data', ...showData)
  app.get('/settings/data/sizes', ...showTableSizes)
  app.get('/settings/about', ...showAbout)
  app.get('/settings/search', ...searchSettings)
  app.get('/search', ...showPalette)
  app.get('/audit', ...showAuditLog)
}

/** The event stream of the dashboard. */
const mountLive = (app: Hono<AppEnv>): void => {
  app.get('/api/events', ...streamChanges)
}

const mountPages = (app: Hono<AppEnv>): void => {
  app.get('/', ...goToDashboard)
  app.get('/dashboard', ...showOverview)
  app.get('/footer', ...showFooter)
  app.get('/assets/:file', ...serveAsset)
}

/** `/api/codex` and `/api/fleet`: usage for clients and companion tools. */
const mountClientApi = (app: Hono<AppEnv>): void => {
  app.get('/api/codex/usage', ...showNativeUsage)
  app.get('/api/codex/usage/', ...showNativeUsage)
  app.post('/api/codex/rate-limit-reset-credits/consume', ...consumeNativeResetCredit)
  app.post('/api/codex/rate-limit-reset-credits/consume/', ...consumeNativeResetCredit)
  app.get('/api/fleet/summary', ...showFleet)
  app.get('/api/fleet/observability', ...showFleetActivity)
  app.post('/api/fleet/refresh', ...refreshFleet)
}
