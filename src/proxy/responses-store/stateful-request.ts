/** Builds the upstream body of a `/v1/responses` request, with everything it refers to, and what to store of it. */
import type { Client } from '../../auth/client-key.ts'
import type { Bindings } from '../../boot/bindings.ts'
import { getText, type JsonObject } from '../../lib/json.ts'
import { endsInTrigger } from '../formats/compaction-trigger.ts'
import { normaliseResponses, withCiphertext } from '../formats/v1-responses.ts'
import { underFastModeRule, withKeyPolicy } from '../ingress/key-policy.ts'
import { rewrittenWithInput } from '../ingress/rewrite.ts'
import type { TurnBody } from '../turn/turn.ts'
import { type Recalled, recall } from './recall.ts'
import type { ResponseEcho } from './response-echo.ts'
import { NO_KEY, type RequestToStore } from './stored-response.ts'

interface StatefulRequest {
  body: TurnBody
  dropped: string[]
  echo: ResponseEcho
  /** Null where nothing is to be stored. */
  toStore: RequestToStore | null
}

/** Clients without a key share one scope. */
export const storeScope = ({ key }: Client): string => key?.id ?? NO_KEY

/** The request with everything it refers to. Throws what `recall` does, and `busy`. */
export const recallRequest = ({ responses, bodies }: Bindings, raw: TurnBody, client: Client): Recalled =>
  recall(raw.json, {
    store: responses,
    scope: storeScope(client),
    admit: (bytes) => bodies.grow(raw.hold, raw.bytes.length + bytes),
  })

/** Throws what `underFastModeRule`, `recallRequest` and `normaliseResponses` do. */
export const statefulRequest = (env: Bindings, sent: TurnBody, client: Client): StatefulRequest => {
  const asked = underFastModeRule(sent, client.key, env.settings.current())
  const raw = asked.body
  const recalled = recallRequest(env, raw, client)
  const { body: normal, dropped, own } = normaliseResponses(recalled.body, {}, recalled.history)
  // Usually the request's own items are exactly what is sent, so their text is written once for both.
  const isSentAsIs = recalled.previous === null && recalled.texts.size === 0 && own.system.size === 0
  const json = withKeyPolicy(withCiphertext(normal), asked.key)
  const { body, input } = rewrittenWithInput(raw, json, isSentAsIs ? null : recalled.texts)
  const store = env.responses.isOn && raw.json.store !== false
  // A compaction trigger must come last, so no request can continue one.
  const isStored = store && !endsInTrigger(normal.input)
  const textOfItem = (item: JsonObject) => recalled.texts.get(item) ?? JSON.stringify(item)
  return {
    body,
    dropped: [...asked.dropped, ...dropped],
    echo: { store, previousResponseId: getText(raw.json.previous_response_id) || null },
    toStore: isStored
      ? {
          scope: storeScope(client),
          previous: recalled.previous,
          input: isSentAsIs ? input : `[${own.items.map(textOfItem).join(',')}]`,
          inputIds: own.items.flatMap(({ id }) => getText(id) || []),
          instructions: own.items.flatMap((item, index) => (own.system.has(item) ? [index] : [])),
          itemIds: recalled.itemIds,
          callIds: [],
        }
      : null,
  }
}
