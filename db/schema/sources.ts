/** Model sources: OpenAI-compatible servers beside the pool, and the models they list. */
import { integer, real, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

/** `unknown`: not used since it was added or changed. */
export const SOURCE_HEALTHS = ['unknown', 'ok', 'failing'] as const
export type SourceHealth = (typeof SOURCE_HEALTHS)[number]

export const modelSources = sqliteTable('model_sources', {
  id: text().primaryKey(),
  name: text().notNull().unique(),
  kind: text({ enum: ['openai_compatible'] })
    .notNull()
    .default('openai_compatible'),
  /** Without a trailing slash. */
  baseUrl: text().notNull(),
  apiKeySealed: text(),
  supportsChat: integer({ mode: 'boolean' }).notNull().default(true),
  supportsResponses: integer({ mode: 'boolean' }).notNull().default(false),
  supportsAudio: integer({ mode: 'boolean' }).notNull().default(false),
  supportsEmbeddings: integer({ mode: 'boolean' }).notNull().default(false),
  timeoutSeconds: integer().notNull().default(600),
  /** 0: unlimited. */
  maxConcurrency: integer().notNull().default(0),
  isEnabled: integer({ mode: 'boolean' }).notNull().default(true),
  health: text({ enum: SOURCE_HEALTHS }).notNull().default('unknown'),
  /** The error code behind `failing`. */
  healthCode: text(),
  /** ms since epoch; when `health` was last determined. */
  healthAt: integer(),
  /** The result of the last test: `model/sources/test-result.ts`. */
  lastTest: text({ mode: 'json' }).$type<unknown>(),
  createdAt: integer().notNull(),
  updatedAt: integer().notNull(),
})

export const sourceModels = sqliteTable(
  'source_models',
  {
    id: text().primaryKey(),
    sourceId: text()
      .notNull()
      .references(() => modelSources.id, { onDelete: 'cascade' }),
    model: text().notNull(),
    displayName: text(),
    contextWindow: integer(),
    maxOutputTokens: integer(),
    supportsStreaming: integer({ mode: 'boolean' }).notNull().default(true),
    supportsTools: integer({ mode: 'boolean' }).notNull().default(false),
    supportsVision: integer({ mode: 'boolean' }).notNull().default(false),
    /** USD; null: no price. */
    inputPer1m: real('input_per_1m'),
    cachedInputPer1m: real('cached_input_per_1m'),
    outputPer1m: real('output_per_1m'),
    audioPerMinute: real(),
    metadata: text({ mode: 'json' }).$type<Record<string, unknown>>(),
    isEnabled: integer({ mode: 'boolean' }).notNull().default(true),
    createdAt: integer().notNull(),
    updatedAt: integer().notNull(),
  },
  (t) => [uniqueIndex('source_models_identity').on(t.sourceId, t.model)],
)
