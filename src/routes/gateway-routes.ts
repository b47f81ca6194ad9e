/** THE TABLE of gateway routes: every method, path and gate for model clients and probes. See also `dashboard-routes.ts`. */
import type { Hono } from 'hono'
import { live, ready, startup } from '../admin/health.ts'
import type { AppEnv } from '../boot/bindings.ts'
import { opportunisticAdmission } from '../proxy/handlers/admission.ts'
import { showCapacity } from '../proxy/handlers/capacity.ts'
import { chatCompletions } from '../proxy/handlers/chat.ts'
import { nativeCompact, publicCompact } from '../proxy/handlers/compact.ts'
import { embeddings } from '../proxy/handlers/embeddings.ts'
import { listResetCredits, showKeyUsage } from '../proxy/handlers/key-usage.ts'
import { answerMcp, rejectMcpStream } from '../proxy/handlers/mcp.ts'
import { countTokens, messages } from '../proxy/handlers/messages.ts'
import { nativeModels, publicModel, publicModels } from '../proxy/handlers/models.ts'
import { showNativeResetCredits, showNativeUsage } from '../proxy/handlers/native-usage.ts'
import { redeemCredit } from '../proxy/handlers/redeem-credit.ts'
import { nativeResponses, publicResponses } from '../proxy/handlers/responses.ts'
import { nativeSocket, publicSocket } from '../proxy/handlers/sockets.ts'
import { deleteResponse, listInputItems, showResponse } from '../proxy/handlers/stored-responses.ts'
import { warmUpByBody, warmUpByPath } from '../proxy/handlers/warmup.ts'
import {
  checkSafety,
  clearGoal,
  codexKeySet,
  getGoalByBody,
  getGoalByQuery,
  reportAnalytics,
  search,
  setGoal,
  summarizeTrace,
  whamKeySet,
} from '../proxy/relay/control.ts'
import { createFile, finalizeFile } from '../proxy/relay/files.ts'
import { nativeEdit, nativeGeneration, publicEdit, publicGeneration, variations } from '../proxy/relay/images.ts'
import { nativeCall, nativeLive, publicCall, publicLive } from '../proxy/relay/live.ts'
import { nativeSideband, publicSideband, realtimeSideband } from '../proxy/relay/sideband.ts'
import { nativeTranscription, publicTranscription } from '../proxy/relay/transcription.ts'

export const mountGateway = (app: Hono<AppEnv>): void => {
  mountNativeTraffic(app)
  mountPublicTraffic(app)
  mountProbes(app)
}

/** `/backend-api`: the native client and its extension. */
const mountNativeTraffic = (app: Hono<AppEnv>): void => {
  app.post('/backend-api/codex/responses', ...nativeResponses)
  app.post('/backend-api/codex/responses/', ...nativeResponses)
  app.get('/backend-api/codex/responses', ...nativeSocket)
  app.post('/backend-api/codex/responses/compact', ...nativeCompact)
  app.get('/backend-api/codex/models', ...nativeModels)
  app.get('/backend-api/codex/opportunistic/admission', ...opportunisticAdmission)
  app.get('/backend-api/codex/thread/goal/get', ...getGoalByQuery)
  app.post('/backend-api/codex/thread/goal/get', ...getGoalByBody)
  app.post('/backend-api/codex/thread/goal/set', ...setGoal)
  app.post('/backend-api/codex/thread/goal/clear', ...clearGoal)
  app.post('/backend-api/codex/analytics-events/events', ...reportAnalytics)
  app.post('/backend-api/codex/memories/trace_summarize', ...summarizeTrace)
  app.post('/backend-api/codex/safety/arc', ...checkSafety)
  app.post('/backend-api/codex/alpha/search', ...search)
  app.get('/backend-api/codex/agent-identities/jwks', ...codexKeySet)
  app.get('/backend-api/wham/agent-identities/jwks', ...whamKeySet)
  app.get('/backend-api/wham/usage', ...showNativeUsage)
  app.get('/backend-api/wham/rate-limit-reset-credits', ...showNativeResetCredits)
  app.get('/wham/usage', ...showNativeUsage)
  app.get('/wham/rate-limit-reset-credits', ...showNativeResetCredits)
  app.post('/backend-api/codex/realtime/calls', ...nativeCall)
  app.post('/backend-api/codex/live', ...nativeLive)
  app.post('/backend-api/codex/images/generations', ...nativeGeneration)
  app.post('/backend-api/codex/images/edits', ...nativeEdit)
  app.post('/backend-api/transcribe', ...nativeTranscription)
  app.post('/backend-api/files', ...createFile)
  app.post('/backend-api/files/:id/uploaded', ...finalizeFile)
  // Wider than a valid id, which the handler checks: the answer to a wrong one says what is wrong.
  app.get('/backend-api/codex/:callId{rtc_.*|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}}', ...nativeSideband)
}

/** `/v1`: OpenAI SDKs and compatible tools. */
const mountPublicTraffic = (app: Hono<AppEnv>): void => {
  app.post('/v1/responses', ...publicResponses)
  app.post('/v1/responses/', ...publicResponses)
  app.get('/v1/responses', ...publicSocket)
  app.post('/v1/responses/compact', ...publicCompact)
  app.get('/v1/responses/:id', ...showResponse)
  app.delete('/v1/responses/:id', ...deleteResponse)
  app.get('/v1/responses/:id/input_items', ...listInputItems)
  app.post('/v1/chat/completions', ...chatCompletions)
  app.post('/v1/messages', ...messages)
  app.post('/v1/messages/count_tokens', ...countTokens)
  app.get('/v1/models', ...publicModels)
  app.get('/v1/models/:id', ...publicModel)
  app.post('/v1/embeddings', ...embeddings)
  app.post('/v1/images/generations', ...publicGeneration)
  app.post('/v1/images/edits', ...publicEdit)
  app.post('/v1/images/variations', ...variations)
  app.post('/v1/audio/transcriptions', ...publicTranscription)
  app.post('/v1/warmup', ...warmUpByBody)
  app.post('/v1/warmup/:mode', ...warmUpByPath)
  app.get('/v1/usage', ...showKeyUsage)
  app.get('/v1/capacity', ...showCapacity)
  app.get('/v1/reset-credit', ...listResetCredits)
  app.post('/v1/reset-credit', ...redeemCredit)
  app.post('/v1/live', ...publicLive)
  app.get('/v1/live/:callId', ...publicSideband)
  app.post('/v1/realtime/calls', ...publicCall)
  app.get('/v1/realtime', ...realtimeSideband)
  app.post('/mcp', ...answerMcp)
  app.get('/mcp', ...rejectMcpStream)
  app.delete('/mcp', ...rejectMcpStream)
}

/** HAProxy probes with OPTIONS by default. */
const PROBED = ['GET', 'OPTIONS']

/** Probes for containers, load balancers and curl. */
const mountProbes = (app: Hono<AppEnv>): void => {
  app.on(PROBED, '/health', ...live)
  app.on(PROBED, '/health/live', ...live)
  app.on(PROBED, '/health/ready', ...ready)
  app.on(PROBED, '/health/startup', ...startup)
}
