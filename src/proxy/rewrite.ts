/** Serialises the body of a translated request, keeping values that serialising would change. */
import type { JsonObject } from '../lib/json.ts'
import { encodeUtf8 } from '../lib/utf8.ts'
import { demandShallow } from './body-bounds.ts'
import { ownTexts, writeJson } from './own-text.ts'
import type { TurnBody } from './turn.ts'

/**
 * `json` as the new body, with the budget adjusted to its size. Lists and objects of the client keep their original
 * text where that matters (`own-text.ts`). Throws `invalid_request_error`.
 */
export const rewritten = (asked: TurnBody, json: JsonObject): TurnBody => {
  const { bytes: written, hold } = asked
  demandShallow(written)
  const bytes = encodeUtf8(writeJson(json, ownTexts(written, asked.json)))
  hold.resize(bytes.length)
  return { bytes, json, hold }
}
