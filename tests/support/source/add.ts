/** Adds the stand-in source, or another one, to a test app. */
import { commit } from '../../../db/commit.ts'
import type { Bindings } from '../../../src/boot/bindings.ts'
import { NewSource } from '../../../src/model/sources/source-input.ts'
import { createSource, deleteSource, type StoredSource, updateSource } from '../../../src/model/sources/source-rows.ts'
import { SOURCE_URL, type StandInSource } from './app.ts'

/** As in a request body, but with a model per name as the simplest form. */
type Wanted = Omit<Partial<Parameters<typeof NewSource.parse>[0] & object>, 'models'> & {
  models?: (string | ({ model: string } & Record<string, unknown>))[]
  [field: string]: unknown
}

interface App {
  bindings: Bindings
  /** The one that `SOURCE_URL` leads to. */
  source?: StandInSource
}

const doing = (app: App) => ({
  actor: { id: 'test', method: null, address: null, at: app.bindings.clock.now() },
  random: app.bindings.random,
  sealer: app.bindings.sealer,
  requireConfirmation: () => {},
})

/** It supports everything, and requests reach the stand-in with its key. */
export const addSource = async (app: App, { models = ['llama-4'], ...fields }: Wanted = {}): Promise<StoredSource> => {
  const input = NewSource.parse({
    name: 'Local',
    baseUrl: SOURCE_URL,
    apiKey: app.source?.state.key ?? null,
    supportsResponses: true,
    supportsAudioTranscriptions: true,
    supportsEmbeddings: true,
    models: models.map((model) => ({ supportsTools: true, ...(typeof model === 'string' ? { model } : model) })),
    ...fields,
  })
  return commit(app.bindings.db, (tx) => createSource(tx, input, doing(app)))
}

export const disableSource = async (app: App, id: string): Promise<void> =>
  void (await commit(app.bindings.db, (tx) => updateSource(tx, id, { isEnabled: false }, doing(app))))

export const dropSource = (app: App, id: string): Promise<void> =>
  commit(app.bindings.db, (tx) => deleteSource(tx, id, doing(app).actor))
