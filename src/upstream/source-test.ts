/** Tests a model source: its list of models, and one small request for each kind it claims to support. */
import { AppError } from '../errors.ts'
import { iso } from '../lib/iso.ts'
import { CAPABILITIES, type Capability, type Source } from '../model/sources/sources.ts'
import { problemIn, type TestResult } from '../model/sources/test-result.ts'
import { callModelSource, type SourceCallDeps } from './source-calls.ts'
import { listedIn } from './source-models.ts'

const LIST_MS = 15_000
/** A local server may load the model first. */
const MAX_CALL_MS = 120_000

type Tested = Exclude<Capability, 'audio'>
const TESTED = CAPABILITIES.filter((name): name is Tested => name !== 'audio')

/** The smallest request of each kind. No cap on the output of Responses below 16 is accepted everywhere. */
const CALLS: Record<Tested, (model: string) => { path: string; json: Record<string, unknown> }> = {
  chat: (model) => ({
    path: '/chat/completions',
    json: { model, messages: [{ role: 'user', content: 'Reply with OK.' }], max_tokens: 8 },
  }),
  responses: (model) => ({ path: '/responses', json: { model, input: 'Reply with OK.', max_output_tokens: 16 } }),
  embeddings: (model) => ({ path: '/embeddings', json: { model, input: 'OK' } }),
}

/** Never throws for what the source does. Rejects with the reason of `signal`. */
export const testSource = async (deps: SourceCallDeps, source: Source, signal?: AbortSignal): Promise<TestResult> => {
  const { clock } = deps
  const start = clock.monotonic()
  const at = iso(clock.now())
  const list = await timed(deps, () =>
    callModelSource(deps, source, { path: '/models', timeoutMs: LIST_MS, ...(signal && { signal }) }),
  )
  signal?.throwIfAborted()
  const listed = list.error ? [] : listedIn(list.value).map(({ model }) => model)
  const calls: TestResult['calls'] = []
  for (const capability of TESTED.filter((name) => source.supports[name])) {
    const model = modelFor(capability, source, listed)
    // Neither the list nor the request would be answered.
    if (model === null || list.error?.code === 'model_source_unreachable') continue
    const timeoutMs = Math.min(source.timeoutMs, MAX_CALL_MS)
    const { error, durationMs } = await timed(deps, () =>
      callModelSource(deps, source, { ...CALLS[capability](model), timeoutMs, ...(signal && { signal }) }),
    )
    signal?.throwIfAborted()
    calls.push({ capability, model, ok: error === null, durationMs, error })
  }
  const models = {
    count: list.error ? null : listed.length,
    durationMs: list.durationMs,
    missing: list.error ? [] : [...source.models.keys()].filter((model) => !listed.includes(model)),
    error: list.error,
  }
  const result = { at, durationMs: Math.round(clock.monotonic() - start), models, calls }
  return { ok: problemIn(result) === null, ...result }
}

const EMBEDS = /embed/i

/** One of ours that the source lists, one of ours, or one it lists; by name the right kind. */
const modelFor = (capability: Tested, { models }: Source, listed: readonly string[]): string | null => {
  const ours = [...models.keys()]
  const both = ours.filter((model) => listed.includes(model))
  const known = [both, ours, listed].find(({ length }) => length > 0) ?? []
  const isFit = (model: string) => EMBEDS.test(model) === (capability === 'embeddings')
  return known.find(isFit) ?? known[0] ?? null
}

const timed = async <T>({ clock }: SourceCallDeps, ask: () => Promise<T>) => {
  const start = clock.monotonic()
  const outcome = await ask().then(
    (value) => ({ value, error: null }),
    (err: unknown) => {
      if (!(err instanceof AppError)) throw err
      return { value: null, error: { code: err.code as string, message: err.message } }
    },
  )
  return { ...outcome, durationMs: Math.round(clock.monotonic() - start) }
}
