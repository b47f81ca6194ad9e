/** The demo's model sources: one that works and one that does not. */
import type { Tx } from '../../db/commit.ts'
import { iso } from '../../src/lib/iso.ts'
import type { Random } from '../../src/lib/random.ts'
import type { Sealer } from '../../src/lib/seal.ts'
import type { Actor } from '../../src/model/audit/audit.ts'
import { storeTest } from '../../src/model/sources/source-health.ts'
import { NewSource } from '../../src/model/sources/source-input.ts'
import { createSource } from '../../src/model/sources/source-rows.ts'

interface Doing {
  actor: Actor
  random: Random
  sealer: Sealer
  /** ms since epoch */
  testedAt: number
}

const RACK = {
  name: 'Rack (vLLM)',
  baseUrl: 'http://10.20.0.8:8000/v1',
  supportsResponses: true,
  supportsEmbeddings: true,
  maxConcurrency: 8,
  models: [
    { model: 'qwen3-coder-480b', contextWindow: 262_144, supportsTools: true, inputPer1m: 0.2, outputPer1m: 0.8 },
    { model: 'gpt-oss-120b', contextWindow: 131_072, supportsTools: true, inputPer1m: 0.05, outputPer1m: 0.25 },
    { model: 'bge-m3-embed', contextWindow: 8192, inputPer1m: 0.01 },
  ],
}
const LAPTOP = { name: 'Laptop (Ollama)', baseUrl: 'http://192.168.1.23:11434/v1', models: [{ model: 'llama3.3' }] }

export const addSources = async (tx: Tx, { actor, random, sealer, testedAt }: Doing): Promise<void> => {
  const doing = { actor, random, sealer, requireConfirmation: () => {} }
  const at = iso(testedAt)
  const call = { model: RACK.models[0]?.model ?? '', ok: true, error: null }
  const rack = await createSource(tx, NewSource.parse(RACK), doing)
  const calls = [
    { capability: 'chat' as const, durationMs: 412, ...call },
    { capability: 'responses' as const, durationMs: 388, ...call },
    { capability: 'embeddings' as const, durationMs: 41, ...call, model: 'bge-m3-embed' },
  ]
  const models = { count: 3, durationMs: 18, missing: [], error: null }
  await storeTest(tx, rack, { ok: true, at, durationMs: 859, models, calls }, { ...actor, at: testedAt })
  const laptop = await createSource(tx, NewSource.parse(LAPTOP), doing)
  const error = { code: 'model_source_unreachable', message: 'The model source could not be reached.' }
  const failed = { ok: false, at, durationMs: 6, models: { count: null, durationMs: 6, missing: [], error }, calls: [] }
  await storeTest(tx, laptop, failed, { ...actor, at: testedAt })
}
