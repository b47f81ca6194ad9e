/** Routes of captures: a part of the table in `dashboard-routes.ts`. */
import type { Hono } from 'hono'
import {
  deleteCapture,
  deleteCapturedRequest,
  listCapturedRequests,
  showCapturedList,
  showCapturedRequest,
  showCapturedTab,
} from './admin/captured-requests.ts'
import { endCapture, listCaptures, showCaptureLine, showCaptures, startCapture } from './admin/captures.ts'
import type { AppEnv } from './bindings.ts'

/** Captures and what they hold. */
export const mountCaptures = (app: Hono<AppEnv>): void => {
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
