/** THE TABLE of dashboard routes: every method, path and gate of the JSON API and the pages. See also `gateway-routes.ts`. */
import type { Hono } from 'hono'
import { showAbout } from '../admin/about.ts'
import { showAccess, showSettings } from '../admin/access.ts'
import { exportAccounts, exportAuth } from '../admin/account-export.ts'
import { importChosen, preflightImport } from '../admin/account-import.ts'
import { showAccount, showAccounts, showAccountTrends } from '../admin/account-pages.ts'
import { setWindowStart } from '../admin/account-window.ts'
import {
  changeTags,
  deleteAccount,
  deleteAccounts,
  editAccount,
  importAccounts,
  listAccounts,
  pauseAccount,
  pauseAccounts,
  probeAccount,
  probeAccounts,
  reactivateAccount,
  reactivateAccounts,
  setAlias,
  setRoutingPolicies,
  setRoutingPolicy,
} from '../admin/accounts.ts'
import { createApiKey, deleteApiKey, editApiKey, listApiKeys, regenerateApiKey } from '../admin/api-keys.ts'
import { listAuditLog } from '../admin/audit.ts'
import { showAuditLog } from '../admin/audit-page.ts'
import { chooseClock } from '../admin/auth/clock.ts'
import { changeGuestPassword, logInAsGuest, logOutAllGuests, removeGuestPassword } from '../admin/auth/guest.ts'
import { logIn } from '../admin/auth/login.ts'
import { editMe, showMe } from '../admin/auth/me.ts'
import {
  deletePasskey,
  editPasskey,
  finishPasskeySignIn,
  finishPasskeyStepUp,
  finishRegistration,
  listOwnPasskeys,
  startPasskeySignIn,
  startPasskeyStepUp,
  startRegistration,
} from '../admin/auth/passkeys.ts'
import { removePassword, replacePassword } from '../admin/auth/password.ts'
import { logOut, logOutEverywhere, showSession } from '../admin/auth/session.ts'
import {
  endOtherSessions,
  endOwnSession,
  endUserSession,
  listOwnSessions,
  listSessionsOf,
} from '../admin/auth/sessions.ts'
import { setUpPassword } from '../admin/auth/setup.ts'
import { stepUp } from '../admin/auth/step-up.ts'
import { confirmTotpSetup, removeTotp, renewRecoveryCodes, startTotpSetup, verifyTotp } from '../admin/auth/totp.ts'
import { createBackup, downloadBackup, listBackups } from '../admin/backups.ts'
import { showConversationPage, showConversations } from '../admin/conversation-pages.ts'
import { listConversations, showConversation } from '../admin/conversations.ts'
import { documentation } from '../admin/docs.ts'
import { showDoctor } from '../admin/doctor.ts'
import { showKeyTestChecks, socketForBrowser, streamForBrowser, uploadFromBrowser } from '../admin/doctor-measures.ts'
import { explainChoice, leadToSimulator, showSimulator } from '../admin/explain.ts'
import { addFirewallEntry, removeFirewallEntry, showFirewall } from '../admin/firewall.ts'
import { showFooter } from '../admin/footer.ts'
import { showGuide, showGuides } from '../admin/guides.ts'
import { showInvitePage } from '../admin/invite.ts'
import { goToKeys, showEditKey, showKey, showKeys, showNewKey } from '../admin/key-pages.ts'
import { testApiKey } from '../admin/key-test.ts'
import { showKeyTrends, showKeyUsage7d } from '../admin/key-week.ts'
import { streamChanges } from '../admin/live.ts'
import { exportLogs, exportRequestLogs } from '../admin/log-export.ts'
import { showLogs, showRequestPage, tailLogs } from '../admin/logs-page.ts'
import { showMyAccount, showTwoFactor } from '../admin/me.ts'
import { showMetrics } from '../admin/metrics.ts'
import { showBrowserSignIn, showDeviceSignIn, showImport } from '../admin/new-account.tsx'
import { cancelSignIn, completeSignIn, pasteCallback, showSignIn, startSignIn } from '../admin/oauth.ts'
import { goToDashboard, showOverview } from '../admin/overview.ts'
import { showPalette } from '../admin/palette.ts'
import { acceptInvitation, showInvitation } from '../admin/people/accept.ts'
import { inviteUser, listInvitations, resendInvitation, revokeInvitation } from '../admin/people/invites.ts'
import { editAuthProvider, listAuthProviders } from '../admin/people/providers.ts'
import {
  addRole,
  changeRole,
  copyRole,
  listDashboardRoles,
  listPermissions,
  removeRole,
} from '../admin/people/roles.ts'
import {
  deleteDashboardUser,
  editDashboardUser,
  listDashboardUsers,
  reactivateUserKeys,
  resetUserTotp,
  revokeUserSessions,
} from '../admin/people/users.ts'
import { privacyEye } from '../admin/privacy.ts'
import { getReport, showReports } from '../admin/reports.ts'
import { listRejectedClients, listRequestOptions, listRequests, showRequest } from '../admin/requests.ts'
import { consumeResetCredit, listAccountResetCredits } from '../admin/reset-credits.ts'
import { changeSettings, getSettings, putSettings } from '../admin/settings.ts'
import { searchSettings, showData, showNetwork, showRouting, showTableSizes } from '../admin/settings-pages.ts'
import { showConfirm, showLogin, showPending, showSetup, showTotp } from '../admin/sign-in.ts'
import { compareStrategies, showStrategies } from '../admin/strategies.ts'
import { showUsageHistory, showUsageSummary, showUsageWindow } from '../admin/usage.ts'
import type { AppEnv } from '../boot/bindings.ts'
import { serveAsset } from '../http/assets.ts'
import { refreshFleet, showFleet, showFleetActivity } from '../proxy/handlers/fleet.ts'
import { consumeNativeResetCredit, showNativeUsage } from '../proxy/handlers/native-usage.ts'
import { gateway } from './gateway.ts'
import { mountManaged } from './managed-routes.ts'

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

/** `/api/dashboard-auth`: passwords, second factors, confirmations, guests, own account. Forms can only POST. */
const mountSignIn = (app: Hono<AppEnv>): void => {
  app.get('/api/dashboard-auth/session', ...showSession)
  app.post('/api/dashboard-auth/password/setup', ...setUpPassword)
  app.post('/api/dashboard-auth/password/login', ...logIn)
  app.post('/api/dashboard-auth/password/change', ...replacePassword)
  app.delete('/api/dashboard-auth/password', ...removePassword)
  app.post('/api/dashboard-auth/password/remove', ...removePassword)
  app.post('/api/dashboard-auth/guest/login', ...logInAsGuest)
  app.post('/api/dashboard-auth/guest/password', ...changeGuestPassword)
  app.delete('/api/dashboard-auth/guest/password', ...removeGuestPassword)
  app.post('/api/dashboard-auth/guest/password/remove', ...removeGuestPassword)
  app.post('/api/dashboard-auth/guest/logout-all', ...logOutAllGuests)
  app.post('/api/dashboard-auth/totp/setup/start', ...startTotpSetup)
  app.post('/api/dashboard-auth/totp/setup/confirm', ...confirmTotpSetup)
  app.post('/api/dashboard-auth/totp/verify', ...verifyTotp)
  app.post('/api/dashboard-auth/totp/disable', ...removeTotp)
  app.post('/api/dashboard-auth/totp/recovery-codes', ...renewRecoveryCodes)
  app.post('/api/dashboard-auth/step-up', ...stepUp)
  app.post('/api/dashboard-auth/logout', ...logOut)
  app.post('/api/dashboard-auth/logout-all', ...logOutEverywhere)
  app.get('/api/dashboard-auth/me', ...showMe)
  app.patch('/api/dashboard-auth/me', ...editMe)
  app.post('/api/dashboard-auth/me', ...editMe)
  app.post('/api/dashboard-auth/clock', ...chooseClock)
}

/** `/api/dashboard-auth/passkeys`, `/api/dashboard-auth/sessions`. */
const mountPasskeys = (app: Hono<AppEnv>): void => {
  app.get('/api/dashboard-auth/passkeys', ...listOwnPasskeys)
  app.post('/api/dashboard-auth/passkeys/register/start', ...startRegistration)
  app.post('/api/dashboard-auth/passkeys/register/finish', ...finishRegistration)
  app.patch('/api/dashboard-auth/passkeys/:id', ...editPasskey)
  app.delete('/api/dashboard-auth/passkeys/:id', ...deletePasskey)
  app.post('/api/dashboard-auth/passkeys/sign-in/start', ...startPasskeySignIn)
  app.post('/api/dashboard-auth/passkeys/sign-in/finish', ...finishPasskeySignIn)
  app.post('/api/dashboard-auth/passkeys/step-up/start', ...startPasskeyStepUp)
  app.post('/api/dashboard-auth/passkeys/step-up/finish', ...finishPasskeyStepUp)
  app.get('/api/dashboard-auth/sessions', ...listOwnSessions)
  app.delete('/api/dashboard-auth/sessions', ...endOtherSessions)
  app.delete('/api/dashboard-auth/sessions/:id', ...endOwnSession)
  app.get('/api/dashboard-users/:id/sessions', ...listSessionsOf)
  app.delete('/api/dashboard-users/:id/sessions/:sessionId', ...endUserSession)
}

/** Users, invites, roles, sign-in providers, and the audit log. */
const mountPeople = (app: Hono<AppEnv>): void => {
  app.get('/api/dashboard-users', ...listDashboardUsers)
  app.post('/api/dashboard-users', ...inviteUser)
  app.get('/api/dashboard-users/invites', ...listInvitations)
  app.patch('/api/dashboard-users/:id', ...editDashboardUser)
  app.delete('/api/dashboard-users/:id', ...deleteDashboardUser)
  app.post('/api/dashboard-users/:id/invite', ...resendInvitation)
  app.delete('/api/dashboard-users/:id/invite', ...revokeInvitation)
  app.post('/api/dashboard-users/:id/reset-totp', ...resetUserTotp)
  app.post('/api/dashboard-users/:id/revoke-sessions', ...revokeUserSessions)
  app.post('/api/dashboard-users/:id/reactivate-keys', ...reactivateUserKeys)
  app.get('/api/dashboard-auth/invite/:token', ...showInvitation)
  app.post('/api/dashboard-auth/invite/accept', ...acceptInvitation)
  app.get('/api/dashboard-roles', ...listDashboardRoles)
  app.get('/api/dashboard-roles/permissions', ...listPermissions)
  app.post('/api/dashboard-roles', ...addRole)
  app.patch('/api/dashboard-roles/:id', ...changeRole)
  app.delete('/api/dashboard-roles/:id', ...removeRole)
  app.post('/api/dashboard-roles/:id/clone', ...copyRole)
  app.get('/api/auth-providers', ...listAuthProviders)
  app.patch('/api/auth-providers/:id', ...editAuthProvider)
  app.get('/api/audit-logs', ...listAuditLog)
}

/** Pages about users; each is a JSON route's handler, or combines several of their values. */
const mountPeoplePages = (app: Hono<AppEnv>): void => {
  app.get('/login', ...showLogin)
  app.get('/totp', ...showTotp)
  app.get('/setup', ...showSetup)
  app.get('/confirm', ...showConfirm)
  app.get('/auth/pending', ...showPending)
  app.get('/invite/:token', ...showInvitePage)
  app.get('/me', ...showMyAccount)
  app.get('/me/two-factor', ...showTwoFactor)
  app.get('/settings', ...showSettings)
  app.get('/settings/access', ...showAccess)
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
