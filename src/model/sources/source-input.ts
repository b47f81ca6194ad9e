/** The request bodies that create and change a model source. */
import { z } from 'zod'
import { ExpectedVersion } from '../edit-version.ts'

const positive = z.int().min(1).max(1_000_000_000)
const price = z.number().min(0).max(1_000_000)
const text = z.string().trim()

const MAX_METADATA = 16_384

/** JSON text of an object. */
const Metadata = z
  .string()
  .max(MAX_METADATA)
  .transform((json, ctx) => {
    if (json.trim() === '') return null
    const value = parsed(json)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown> // as: checked
    ctx.addIssue({ code: 'custom', message: 'must be a JSON object' })
    return z.NEVER
  })

export const SourceModelInput = z.strictObject({
  model: text.min(1).max(255).describe('The name that clients send, exactly as the source lists it.'),
  displayName: text.max(255).nullish().describe('Shown to clients instead of the name.'),
  contextWindow: positive.nullish().describe('Tokens.'),
  maxOutputTokens: positive.nullish().describe('Tokens.'),
  supportsStreaming: z.boolean().default(true).describe('Answers can be streamed.'),
  supportsTools: z.boolean().default(false).describe('Understands tools.'),
  supportsVision: z.boolean().default(false).describe('Accepts images.'),
  inputPer1m: price.nullish().describe('USD per million input tokens. Null: no price, so the cost is unknown.'),
  cachedInputPer1m: price.nullish().describe('USD per million cached input tokens. Null: as input.'),
  outputPer1m: price.nullish().describe('USD per million output tokens.'),
  audioPerMinute: price.nullish().describe('USD per minute of audio.'),
  rawMetadataJson: Metadata.nullish().describe('A JSON object as text, for what the other fields do not cover.'),
  isEnabled: z.boolean().default(true).describe('When off, the model is not offered.'),
})
export type SourceModelInput = z.output<typeof SourceModelInput>

const models = z
  .array(SourceModelInput)
  .max(1000)
  .refine((list) => new Set(list.map(({ model }) => model)).size === list.length, 'A model is listed twice.')
  .describe('Replaces the list of models.')

export const NewSource = z.strictObject({
  name: text.min(1).max(128).describe('Unique. Sources that list the same model are used in the order of their names.'),
  baseUrl: text
    .min(1)
    .max(2048)
    .describe('Up to and including the version: `http://localhost:11434/v1`. Private addresses are allowed.'),
  apiKey: text
    .max(4096)
    .nullish()
    .describe(
      'Sent as a bearer token. Stored encrypted and never shown. Null: none. A base URL on another server needs it again.',
    ),
  supportsChatCompletions: z.boolean().default(true).describe('Serves `/chat/completions`.'),
  supportsResponses: z.boolean().default(false).describe('Serves `/responses`.'),
  supportsAudioTranscriptions: z.boolean().default(false).describe('Serves `/audio/transcriptions`.'),
  supportsEmbeddings: z.boolean().default(false).describe('Serves `/embeddings`.'),
  timeoutSeconds: z
    .int()
    .min(1)
    .max(3600)
    .nullish()
    .describe('Until an answer starts, for a whole document, and for each silence in a stream. Null: 600.'),
  maxConcurrency: z.int().min(0).max(10_000).nullish().describe('Running requests at most. Null or 0: unlimited.'),
  models: models.default([]),
  isEnabled: z.boolean().default(true).describe('When off, the source is not used.'),
})
export type NewSource = z.output<typeof NewSource>

const withoutDefault = <S extends z.ZodType>(field: z.ZodDefault<S>): S =>
  field.unwrap().describe(field.description ?? '')

/** Without defaults: a missing field stays as it is. */
export const SourcePatch = z
  .strictObject({
    ...NewSource.shape,
    supportsChatCompletions: withoutDefault(NewSource.shape.supportsChatCompletions),
    supportsResponses: withoutDefault(NewSource.shape.supportsResponses),
    supportsAudioTranscriptions: withoutDefault(NewSource.shape.supportsAudioTranscriptions),
    supportsEmbeddings: withoutDefault(NewSource.shape.supportsEmbeddings),
    models,
    isEnabled: withoutDefault(NewSource.shape.isEnabled),
  })
  .partial()
  .extend({
    addModels: models.optional().describe('Added to the list. Models that are on it stay as they are.'),
    expectedVersion: ExpectedVersion,
  })
export type SourcePatch = z.output<typeof SourcePatch>

const parsed = (json: string): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
