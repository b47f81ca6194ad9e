/** The payload of a server-sent event as text and JSON, and our own events as bytes. */
import { parseJson } from './json.ts'
import { decodeUtf8, encodeUtf8 } from './utf8.ts'

/** The payload: all `data` lines joined by newlines; null without any. */
export const eventData = (bytes: Uint8Array): string | null => {
  const text = decodeUtf8(bytes)
  return onlyData(text) ?? joinedData(text)
}

/** Fast path for the usual event: one `data` line at the end, after at most an `event` line. */
const onlyData = (text: string): string | null => {
  const line = text.startsWith('event:') ? text.indexOf('\n') + 1 : 0
  if (!text.startsWith('data: ', line)) return null
  const end = text.length - 2
  return text.indexOf('\n', line) === end && text[end + 1] === '\n' && !text.includes('\r')
    ? text.slice(line + 6, end)
    : null
}

const joinedData = (text: string): string | null => {
  const lines = (text.includes('\r') ? text.replaceAll(/\r\n?/g, '\n') : text).split('\n')
  let data: string | null = null
  for (const line of lines) {
    if (!line.startsWith('data:')) continue
    const value = line.slice(line[5] === ' ' ? 6 : 5)
    data = data === null ? value : `${data}\n${value}`
  }
  return data
}

/** The parsed payload, or undefined when there is none or it is not JSON (`[DONE]`). */
export const eventJson = (bytes: Uint8Array): unknown => {
  const data = eventData(bytes)
  return data === null ? undefined : parseJson(data)
}

/** One event framed as ChatGPT does: `event:` line, one `data:` line, a blank line. */
export const frame = (event: { type: string } & Record<string, unknown>): Uint8Array =>
  encodeUtf8(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
