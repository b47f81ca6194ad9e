/** Serialises the body of a translated request, keeping values that serialising would change. */
import type { JsonObject } from '../lib/json.ts'
import { encodeUtf8 } from '../lib/utf8.ts'
import { demandShallow } from './body-bounds.ts'
import { type OwnTexts, ownTexts, writeJson } from './own-text.ts'
import type { TurnBody } from './turn.ts'

/**
 * `json` as the new body, with the budget adjusted to its size. Lists and objects of the client keep their original
 * text where that matters (`own-text.ts`). Items of `input` that have a text in `texts` are written with it; the text of
 * every other item is added to `texts`. Throws `invalid_request_error`.
 */
export const rewritten = (asked: TurnBody, json: JsonObject, texts?: Map<unknown, string>): TurnBody => {
  const { bytes: written, hold } = asked
  demandShallow(written)
  const own = ownTexts(written, asked.json)
  const bytes = encodeUtf8(texts ? writeWithItems(json, own, texts) : writeJson(json, own))
  hold.resize(bytes.length)
  return { bytes, json, hold }
}

const writeWithItems = (json: JsonObject, own: OwnTexts, texts: Map<unknown, string>): string => {
  const items = (input: readonly unknown[]) =>
    input.map((item) => texts.getOrInsertComputed(item, () => writeJson(item, own)))
  const members = Object.entries(json).filter(([, value]) => value !== undefined)
  const written = (name: string, value: unknown) =>
    name === 'input' && Array.isArray(value) ? `[${items(value).join(',')}]` : writeJson(value, own)
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${written(name, value)}`).join(',')}}`
}
