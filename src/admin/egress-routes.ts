/** The routes of `/api/settings/upstream-proxy`, for the table in `dashboard-routes.ts`. */
import type { Hono } from 'hono'
import type { AppEnv } from '../bindings.ts'
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
} from './egress.ts'

/** Outbound proxies of accounts. */
export const mountEgress = (app: Hono<AppEnv>): void => {
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
