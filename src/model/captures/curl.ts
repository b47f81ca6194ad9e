/** A captured request as a curl command, with a variable in place of the key. */
import { REMOVED } from './redact.ts'

/** What curl sets itself, what the decoded body no longer has, and what proxies in front of Sluice added. */
const LEFT_OUT =
  /^(host|connection|content-length|content-encoding|accept-encoding|transfer-encoding|te|expect|cookie|authorization|upgrade|origin|x-forwarded-.*|forwarded|x-real-ip|via|cf-.*|sec-.*)$/i
/** Longer bodies are sent from a file, which can be downloaded. */
const MAX_INLINE_CHARS = 64 * 1024

interface Replayed {
  origin: string
  method: string
  target: string
  headers: readonly (readonly [name: string, value: string])[]
  /** Null: not text, or not whole. */
  body: string | null
  bodyBytes: number
}

/** Null for a WebSocket, which curl cannot repeat. */
export const getCurl = ({ origin, method, target, headers, body, bodyBytes }: Replayed): string | null => {
  if (method === 'WebSocket') return null
  const hadKey = headers.some(([name]) => name.toLowerCase() === 'authorization')
  const kept = headers.filter(([name, value]) => !LEFT_OUT.test(name) && value !== REMOVED)
  const lines = [
    `curl ${quoted(origin + target)}`,
    ...(method === 'POST' ? [] : [`-X ${quoted(method)}`]),
    ...kept.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(hadKey ? ['-H "Authorization: Bearer $SLUICE_API_KEY"'] : []),
    ...(bodyBytes === 0 ? [] : [getBody(body)]),
  ]
  return lines.join(' \\\n  ')
}

const getBody = (body: string | null): string =>
  body !== null && body.length <= MAX_INLINE_CHARS ? `--data-binary ${quoted(body)}` : '--data-binary @request-body'

/** For a POSIX shell. A leading `@` would name a file, but bodies of requests begin with `{` or `--`. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
