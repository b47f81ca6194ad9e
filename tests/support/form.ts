/** What a browser would submit of a form: every enabled field with a name. */

/** Name and value in the order of the page, as `new URLSearchParams` takes them. Throws when `id` is no form of `html`. */
export const getFields = (html: string, id: string): [name: string, value: string][] => {
  const form = new RegExp(`<form id="${id}"[\\s\\S]*?</form>`).exec(html)?.[0]
  if (form === undefined) throw new Error(`There is no form "${id}" on the page.`)
  return [...form.matchAll(/<(input|select|textarea)\b([^>]*)>(?:([\s\S]*?)<\/\1>)?/g)].flatMap(
    ([, tag, attributes = '', content = '']) => {
      const name = attribute(attributes, 'name')
      if (name === null || attribute(attributes, 'disabled') !== null) return []
      return getValues(tag, attributes, content).map((value) => [name, value] as [string, string]) // as: a pair, no list
    },
  )
}

const getValues = (tag: string | undefined, attributes: string, content: string): string[] => {
  if (tag === 'select') return getChosen(content, attribute(attributes, 'multiple') !== null)
  if (tag === 'textarea') return [plain(content)]
  const value = attribute(attributes, 'value')
  const type = attribute(attributes, 'type')
  if (type === 'submit') return []
  if (type !== 'checkbox' && type !== 'radio') return [value ?? '']
  return attribute(attributes, 'checked') === null ? [] : [value ?? 'on']
}

const getChosen = (content: string, isMultiple: boolean): string[] => {
  const options = [...content.matchAll(/<option\b([^>]*)>/g)].map(([, attributes = '']) => attributes)
  const selected = options.filter((attributes) => attribute(attributes, 'selected') !== null)
  const sent = isMultiple ? selected : (selected.length > 0 ? selected : options).slice(0, 1)
  return sent.map((attributes) => attribute(attributes, 'value') ?? '')
}

/** null: it is not there. */
const attribute = (attributes: string, name: string): string | null => {
  const found = new RegExp(`(?:^|\\s)${name}(?:="([^"]*)")?(?=\\s|/|$)`).exec(attributes)
  return found ? plain(found[1] ?? '') : null
}

const plain = (text: string): string =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
