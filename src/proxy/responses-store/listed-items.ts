/** The input items of a stored response as a list that can be paged through. */
import { getObject, getText, type JsonObject, parseJson } from '../../lib/json.ts'
import { getChain, type StoredResponse } from './stored-response.ts'

/**
 * Everything the response was made from, oldest first: assumed to be what OpenAI lists, as it says "items used to generate
 * this response". Items that came without an id get one by their place, which an `item_reference` may name. Each is parsed
 * when it is called, because a conversation may be long and a page of it is short.
 */
export const listedItems = (response: StoredResponse): (() => JsonObject)[] =>
  getChain(response).flatMap((one) => {
    const input = one.input.map(
      ({ text }, index) =>
        () =>
          listed(text, listedItemId(one.id, index)),
    )
    const output = one.output.map(
      ({ text }) =>
        () =>
          getObject(parseJson(text)),
    )
    return one === response ? input : [...input, ...output]
  })

const listed = (text: string, id: string): JsonObject => {
  const item = getObject(parseJson(text))
  const isMessage = item.type === undefined || item.type === 'message'
  return { ...(isMessage && { type: 'message', status: 'completed' }), ...item, id: getText(item.id) || id }
}

const listedItemId = (responseId: string, index: number): string => `in_${index}_${responseId}`

export const listedItemPlace = (id: string): { responseId: string; index: number } | null => {
  const [, index, responseId] = /^in_(\d{1,6})_(.+)$/.exec(id) ?? []
  return index === undefined || responseId === undefined ? null : { responseId, index: Number(index) }
}
