/** API descriptions of the model sources. */
import type { WordsByRoute } from './words.ts'

const FAILURES = [
  'model_source_unreachable',
  'model_source_credentials_error',
  'model_source_error',
  'invalid_upstream_response',
] as const

export const SOURCE_WORDS: WordsByRoute = {
  'GET /api/model-sources/': {
    does: 'All model sources by name, without their keys. Only users with `ops:write` see addresses.',
    answer:
      '`{sources: [{id, name, kind, baseUrl, hasApiKey, isEnabled, healthStatus: "unknown" | "ok" | "failing", healthCode, healthCheckedAt, lastTest, supports…, timeoutSeconds, maxConcurrency, models: [{id, model, displayName, contextWindow, …}], createdAt, updatedAt, version}]}`',
  },
  'POST /api/model-sources/': {
    does: 'Adds an OpenAI-compatible server. Link-local and cloud metadata addresses, and Sluice itself, are rejected.',
    answer: '`Source`',
    throws: ['invalid_model_source_payload', 'name_taken'],
    example: { name: 'Ollama', baseUrl: 'http://localhost:11434/v1', models: [{ model: 'llama-4' }] },
  },
  'PATCH /api/model-sources/:id': {
    does: 'Changes the fields you send. `models` replaces the list. Another `baseUrl` or `apiKey` needs a confirmation.',
    answer: '`Source`',
    throws: ['not_found', 'invalid_model_source_payload', 'name_taken', 'edit_conflict'],
    example: { isEnabled: false },
  },
  'DELETE /api/model-sources/:id': {
    does: 'Deletes a source. Its log entries stay. Keys limited to it can use no source afterwards.',
    status: 204,
    throws: ['not_found'],
  },
  'POST /api/model-sources/:id/test': {
    does: 'Lists the models of the source and sends one small request of each supported kind except transcription. A failed test is a result, not an error.',
    answer:
      '`{ok, at, durationMs, models: {count, durationMs, missing, error}, calls: [{capability, model, ok, durationMs, error}]}`',
    throws: ['not_found'],
  },
  'POST /api/model-sources/:id/discover': {
    does: 'Lists the models of the source as they could be added. Stores nothing.',
    answer: '`{sourceId, durationMs, models: [{model, displayName, contextWindow, …, isListed}]}`',
    throws: ['not_found', ...FAILURES],
  },
}
