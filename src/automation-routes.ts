/** Routes of automations: a part of the table in `dashboard-routes.ts`. */
import type { Hono } from 'hono'
import { showAutomation, showAutomations, showNewAutomation, showRunPage } from './admin/automation-pages.ts'
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
  showAutomationRun,
} from './admin/automations.ts'
import type { AppEnv } from './bindings.ts'

/** Scheduled requests and their runs. */
export const mountAutomations = (app: Hono<AppEnv>): void => {
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
