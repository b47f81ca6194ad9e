/** Serialises the body of a translated request, keeping values that serialising would change. */
import type { JsonObject } from '../../lib/json.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'
import type { TurnBody } from '../turn/turn.ts'
import { requireShallow } from './body-bounds.ts'
import { type OwnTexts, ownTexts, writeJson } from './own-text.ts'

/**
 * `json` as the new body, with the budget adjusted to its size. Lists and objects of the client keep their original
 * text where that matters (`own-text.ts`). Items of `input` that have a text in `texts` are written with it; the text of
 * every other item is added to `texts`. Throws `invalid_request_error`.
 */
export const rewritten = (asked: TurnBody, json: JsonObject, texts?: Map<unknown, string>): TurnBody => {
  if (texts) return rewrittenWithInput(asked, json, texts).body
  return written(asked, json, writeJson(json, getOwnTexts(asked)))
}

/** The same, and the text of `input`. Without `texts` the list is written in one go where that gives the same. */
export const rewrittenWithInput = (
  asked: TurnBody,
  json: JsonObject,
  texts: Map<unknown, string> | null,
): { body: TurnBody; input: string } => {
  const own = getOwnTexts(asked)
  const { input: list } = json
  const byItem = texts ?? (own.size > 0 ? new Map<unknown, string>() : null)
  const input = byItem && Array.isArray(list) ? writeItems(list, own, byItem) : writeJson(list, own)
  let text = ''
  for (const name in json) {
    if (json[name] === undefined) continue
    text += `${text === '' ? '{' : ','}${JSON.stringify(name)}:${name === 'input' ? input : writeJson(json[name], own)}`
  }
  return { body: written(asked, json, `${text}}`), input }
}

/** Item by item: an item has the same text in whichever list it is. */
const writeItems = (list: readonly unknown[], own: OwnTexts, texts: Map<unknown, string>): string =>
  `[${list.map((item) => texts.getOrInsertComputed(item, () => writeJson(item, own))).join(',')}]`

const getOwnTexts = ({ bytes, json }: TurnBody): OwnTexts => {
  requireShallow(bytes)
  return ownTexts(bytes, json)
}

const written = ({ hold }: TurnBody, json: JsonObject, text: string): TurnBody => {
  const bytes = encodeUtf8(text)
  hold.resize(bytes.length)
  return { bytes, json, hold }
}
