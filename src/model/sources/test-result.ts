/** What a test of a model source found, as it is stored and shown. */
import { z } from 'zod'
import { CAPABILITIES } from './sources.ts'

const Problem = z.object({ code: z.string(), message: z.string().nullable() })

export const TestResult = z.object({
  ok: z.boolean(),
  /** ISO 8601 */
  at: z.string(),
  durationMs: z.number(),
  /** The source's own list. */
  models: z.object({
    /** Null: it could not be read. */
    count: z.number().nullable(),
    durationMs: z.number(),
    /** Models of ours that it does not list. */
    missing: z.array(z.string()),
    error: Problem.nullable(),
  }),
  /** One small request each; transcription is not tried. */
  calls: z.array(
    z.object({
      capability: z.enum(CAPABILITIES),
      model: z.string(),
      ok: z.boolean(),
      durationMs: z.number(),
      error: Problem.nullable(),
    }),
  ),
})
export type TestResult = z.output<typeof TestResult>

/** Null: none, or one that this version cannot read. */
export const storedResult = (stored: unknown): TestResult | null => TestResult.safeParse(stored).data ?? null

/** The first problem; null: none. A list that cannot be read is none if a request was answered. */
export const problemIn = ({ models, calls }: Pick<TestResult, 'models' | 'calls'>) =>
  calls.find(({ error }) => error !== null)?.error ?? (calls.length > 0 ? null : models.error)

/** Without the words of the source, which may name what only operators know. */
export const withoutSourceText = (result: TestResult): TestResult => {
  const silent = (error: z.output<typeof Problem> | null) => error && { ...error, message: null }
  return {
    ...result,
    models: { ...result.models, error: silent(result.models.error) },
    calls: result.calls.map((call) => ({ ...call, error: silent(call.error) })),
  }
}
