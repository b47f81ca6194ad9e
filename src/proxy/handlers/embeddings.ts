/** `POST /v1/embeddings`: served by model sources only, because ChatGPT has none. */
import { AppError } from '../../errors.ts'
import { choicesFor } from '../../model/sources/sources.ts'
import { OTHER_BODY_BYTES } from '../ingress/raw-body.ts'
import { prepared, readTurnBody, type TurnKindOf, turnRoute } from './turn-route.ts'

const EMBEDDINGS: TurnKindOf = { kind: 'embedding', isNative: false, path: '/embeddings', accept: 'application/json' }

/** An enforced model is one for text, so it is not applied; the allowlist is. */
export const embeddings = turnRoute(async (c) => {
  const raw = await readTurnBody(c, EMBEDDINGS, OTHER_BODY_BYTES)
  const { key } = c.get('client')
  const { model } = raw.json
  const choices = choicesFor(c.env, { model, key, capability: 'embeddings', isStreamed: false })
  if (choices.length > 0) return (await import('../sources/serve.ts')).serveEmbeddings(c, raw, EMBEDDINGS, choices)
  return prepared(c, raw, EMBEDDINGS, (): never => {
    throw new AppError('model_not_found', {
      message: `No model source serves the embedding model '${String(model).slice(0, MAX_SHOWN_CHARS)}'.`,
      param: 'model',
    })
  })
})

const MAX_SHOWN_CHARS = 80
