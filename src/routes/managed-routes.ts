/** Routes of what the dashboard manages beside accounts, keys and users: a part of the table in `dashboard-routes.ts`. */
import type { Hono } from 'hono'
import {
  acknowledgeAlert,
  createAlertChannel,
  deleteAlertChannel,
  editAlertChannel,
  listAlertChannels,
  listAlertDeliveries,
  listAlerts,
  showBell,
  testAlertChannel,
} from '../admin/alerts.ts'
import {
  createAutomationJob,
  deleteAutomationJob,
  editAutomationJob,
  listAutomationJobs,
  listAutomationOptions,
  listAutomationRunOptions,
  listAutomationRuns,
  listRunsOfAutomation,
  runAutomationNow,
  showAutomation,
  showAutomationRun,
  showAutomations,
  showNewAutomation,
  showRunPage,
} from '../admin/automations.ts'
import {
  deleteCapture,
  deleteCapturedRequest,
  listCapturedRequests,
  showCapturedList,
  showCapturedRequest,
  showCapturedTab,
} from '../admin/captured-requests.ts'
import { endCapture, listCaptures, showCaptureLine, showCaptures, startCapture } from '../admin/captures.ts'
import {
  addEndpoint,
  addPool,
  addPoolMember,
  changeEndpoint,
  changePool,
  changePoolMember,
  removeEndpoint,
  removePool,
  removePoolMember,
  setBinding,
  showEgress,
  testEndpoint,
} from '../admin/egress.ts'
import { enterKeyPage, leaveKeyPage, renewOwnSecret, showKeyPage } from '../admin/keys/holder.ts'
import {
  cancelPlannedStart,
  getForecast,
  getPlannerSettings,
  listPlannerDecisions,
  putPlannerSettings,
  startWindowNow,
} from '../admin/quota-planner.ts'
import { showAlertChannel, showAlerts, showNewAlertChannel } from '../admin/settings/alerts.ts'
import {
  createModelSource,
  deleteModelSource,
  discoverModels,
  editModelSource,
  listModelSources,
  showNewSource,
  showSource,
  showSources,
  testModelSource,
} from '../admin/sources.ts'
import {
  deleteFilteredSessions,
  deleteStickySession,
  deleteStickySessions,
  listStickySessions,
  purgeStickySessions,
  releaseAccountSessions,
  showStickySessions,
} from '../admin/sticky-sessions.ts'
import type { AppEnv } from '../boot/bindings.ts'
import { pingForJob } from '../proxy/relay/ping.ts'

export const mountManaged = (app: Hono<AppEnv>): void => {
  mountSources(app)
  mountEgress(app)
  mountSticky(app)
  mountPlanner(app)
  mountKeyHolder(app)
  mountAutomations(app)
  mountCaptures(app)
  mountAlerts(app)
}

/** Model sources. Forms can only POST. */
const mountSources = (app: Hono<AppEnv>): void => {
  app.get('/api/model-sources/', ...listModelSources)
  app.get('/api/model-sources', ...listModelSources)
  app.post('/api/model-sources/', ...createModelSource)
  app.post('/api/model-sources', ...createModelSource)
  app.patch('/api/model-sources/:id', ...editModelSource)
  app.post('/api/model-sources/:id', ...editModelSource)
  app.delete('/api/model-sources/:id', ...deleteModelSource)
  app.post('/api/model-sources/:id/delete', ...deleteModelSource)
  app.post('/api/model-sources/:id/test', ...testModelSource)
  app.post('/api/model-sources/:id/discover', ...discoverModels)
  app.get('/settings/sources', ...showSources)
  app.get('/settings/sources/new', ...showNewSource)
  app.get('/settings/sources/:id', ...showSource)
}

/** Outbound proxies of accounts. */
const mountEgress = (app: Hono<AppEnv>): void => {
  app.get('/api/settings/upstream-proxy', ...showEgress)
  app.post('/api/settings/upstream-proxy/endpoints', ...addEndpoint)
  app.patch('/api/settings/upstream-proxy/endpoints/:id', ...changeEndpoint)
  app.delete('/api/settings/upstream-proxy/endpoints/:id', ...removeEndpoint)
  app.post('/api/settings/upstream-proxy/endpoints/:id/test', ...testEndpoint)
  app.post('/api/settings/upstream-proxy/pools', ...addPool)
  app.patch('/api/settings/upstream-proxy/pools/:id', ...changePool)
  app.delete('/api/settings/upstream-proxy/pools/:id', ...removePool)
  app.post('/api/settings/upstream-proxy/pools/:id/members', ...addPoolMember)
  app.patch('/api/settings/upstream-proxy/pools/:id/members/:endpointId', ...changePoolMember)
  app.delete('/api/settings/upstream-proxy/pools/:id/members/:endpointId', ...removePoolMember)
  app.put('/api/settings/upstream-proxy/accounts/:id/binding', ...setBinding)
}

/** `/api/sticky-sessions`: the accounts that conversations stay on. A key may hold slashes. */
const mountSticky = (app: Hono<AppEnv>): void => {
  app.get('/settings/routing/sessions', ...showStickySessions)
  app.get('/api/sticky-sessions', ...listStickySessions)
  app.post('/api/sticky-sessions/purge', ...purgeStickySessions)
  app.post('/api/sticky-sessions/delete', ...deleteStickySessions)
  app.post('/api/sticky-sessions/delete-filtered', ...deleteFilteredSessions)
  app.delete('/api/sticky-sessions/:kind/:key{.+}', ...deleteStickySession)
  app.post('/api/accounts/:id/release', ...releaseAccountSessions)
}

/** `/api/quota-planner`: when to start five-hour windows. */
const mountPlanner = (app: Hono<AppEnv>): void => {
  app.get('/api/quota-planner/settings', ...getPlannerSettings)
  app.put('/api/quota-planner/settings', ...putPlannerSettings)
  app.get('/api/quota-planner/forecast', ...getForecast)
  app.get('/api/quota-planner/decisions', ...listPlannerDecisions)
  app.post('/api/quota-planner/decisions/:id/cancel', ...cancelPlannedStart)
  app.post(
    '/api/quota-planner/warm-now',
    ...startWindowNow((env, wanted, signal) => pingForJob(env, { ...wanted, route: 'window-start' }, signal)),
  )
}

/** The page of a key, for its holder. Its session is not one of the dashboard. */
const mountKeyHolder = (app: Hono<AppEnv>): void => {
  app.get('/key', ...showKeyPage)
  app.post('/api/key/session', ...enterKeyPage)
  app.post('/api/key/logout', ...leaveKeyPage)
  app.post('/api/key/secret', ...renewOwnSecret)
}

/** Scheduled requests and their runs. */
const mountAutomations = (app: Hono<AppEnv>): void => {
  app.get('/api/automations', ...listAutomationJobs)
  app.post('/api/automations', ...createAutomationJob)
  app.get('/api/automations/options', ...listAutomationOptions)
  app.get('/api/automations/runs', ...listAutomationRuns)
  app.get('/api/automations/runs/options', ...listAutomationRunOptions)
  app.get('/api/automations/runs/:id/details', ...showAutomationRun)
  app.patch('/api/automations/:id', ...editAutomationJob)
  app.post('/api/automations/:id', ...editAutomationJob)
  app.delete('/api/automations/:id', ...deleteAutomationJob)
  app.post('/api/automations/:id/delete', ...deleteAutomationJob)
  app.post('/api/automations/:id/run-now', ...runAutomationNow)
  app.get('/api/automations/:id/runs', ...listRunsOfAutomation)
  app.get('/settings/automations', ...showAutomations)
  app.get('/settings/automations/new', ...showNewAutomation)
  app.get('/settings/automations/runs/:id', ...showRunPage)
  app.get('/settings/automations/:id', ...showAutomation)
}

/** Captures and what they hold. */
const mountCaptures = (app: Hono<AppEnv>): void => {
  app.get('/api/captures', ...listCaptures)
  app.post('/api/captures', ...startCapture)
  app.delete('/api/captures/:id', ...endCapture)
  app.delete('/api/captures/:id/requests', ...deleteCapture)
  app.get('/api/conversation-archive', ...listCapturedRequests)
  app.get('/api/conversation-archive/:id', ...showCapturedRequest)
  app.delete('/api/conversation-archive/:id', ...deleteCapturedRequest)
  app.get('/logs/captures', ...showCaptures)
  app.get('/logs/captures/:id', ...showCapturedList)
  app.get('/logs/:id/captured', ...showCapturedTab)
  app.get('/capture-line', ...showCaptureLine)
}

/** Alerts and their channels. Forms can only POST. */
const mountAlerts = (app: Hono<AppEnv>): void => {
  app.get('/api/alerts', ...listAlerts)
  app.get('/api/alerts/deliveries', ...listAlertDeliveries)
  app.get('/api/alerts/channels', ...listAlertChannels)
  app.post('/api/alerts/channels', ...createAlertChannel)
  app.patch('/api/alerts/channels/:id', ...editAlertChannel)
  app.post('/api/alerts/channels/:id', ...editAlertChannel)
  app.delete('/api/alerts/channels/:id', ...deleteAlertChannel)
  app.post('/api/alerts/channels/:id/delete', ...deleteAlertChannel)
  app.post('/api/alerts/channels/:id/test', ...testAlertChannel)
  app.post('/api/alerts/:key/acknowledge', ...acknowledgeAlert)
  app.get('/settings/alerts', ...showAlerts)
  app.get('/settings/alerts/new', ...showNewAlertChannel)
  app.get('/settings/alerts/:id', ...showAlertChannel)
  app.get('/bell', ...showBell)
}
