/** A model source as clients of the API see it: never its key. */
import { iso, isoOrNull } from '../../lib/iso.ts'
import { type SourceModelRow, type StoredSource, sourceVersion } from './source-rows.ts'
import { storedResult, withoutSourceText } from './test-result.ts'

/** Users who do not manage sources see no addresses of the network and no words of a source. */
export const toSource = (row: StoredSource, { isManager }: { isManager: boolean }) => {
  const lastTest = storedResult(row.lastTest)
  return {
    id: row.id,
    name: row.name,
    kind: row.kind,
    baseUrl: isManager ? row.baseUrl : null,
    hasApiKey: row.apiKeySealed !== null,
    isEnabled: row.isEnabled,
    healthStatus: row.health,
    /** The error code behind `failing`. */
    healthCode: row.healthCode,
    healthCheckedAt: isoOrNull(row.healthAt),
    lastTest: lastTest && (isManager ? lastTest : withoutSourceText(lastTest)),
    supportsChatCompletions: row.supportsChat,
    supportsResponses: row.supportsResponses,
    supportsAudioTranscriptions: row.supportsAudio,
    supportsEmbeddings: row.supportsEmbeddings,
    timeoutSeconds: row.timeoutSeconds,
    maxConcurrency: row.maxConcurrency === 0 ? null : row.maxConcurrency,
    models: row.models.map((model) => toModel(model, isManager)),
    createdAt: iso(row.createdAt),
    updatedAt: iso(row.updatedAt),
    version: sourceVersion(row),
  }
}
export type ShownSource = ReturnType<typeof toSource>

/** Metadata can contain what is added to requests, which may be secret. */
const toModel = ({ metadata, ...row }: SourceModelRow, isManager: boolean) => ({
  id: row.id,
  sourceId: row.sourceId,
  model: row.model,
  displayName: row.displayName,
  contextWindow: row.contextWindow,
  maxOutputTokens: row.maxOutputTokens,
  supportsStreaming: row.supportsStreaming,
  supportsTools: row.supportsTools,
  supportsVision: row.supportsVision,
  inputPer1m: row.inputPer1m,
  cachedInputPer1m: row.cachedInputPer1m,
  outputPer1m: row.outputPer1m,
  audioPerMinute: row.audioPerMinute,
  rawMetadataJson: isManager && metadata !== null ? JSON.stringify(metadata) : null,
  isEnabled: row.isEnabled,
  createdAt: iso(row.createdAt),
  updatedAt: iso(row.updatedAt),
})
