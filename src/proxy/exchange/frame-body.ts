/** Converts a turn between the body of a POST and the `response.create` frame of a socket (Codex CLI 0.169). */
import { getObject, isObject, type JsonObject } from '../../lib/json.ts'
import { placeOfValue } from '../../lib/json-members.ts'
import { cutMembers, putFirst, spliceMembers } from '../ingress/splice.ts'
import type { Turn } from '../turn/turn.ts'

const LITE_HEADER = 'x-openai-internal-codex-responses-lite'
/** On a socket the marker is in the frame, because one connection serves both kinds of models. */
const LITE_METADATA = `ws_request_header_${LITE_HEADER.replaceAll('-', '_')}`
const ONLY_IN_FRAMES = ['type', 'generate', 'previous_response_id']
const SOCKETS_BETA = 'responses_websockets=2026-02-06'

type Bytes = Uint8Array<ArrayBuffer>

/** The body as a frame. A body that arrived as a frame stays unchanged. */
export const asFrame = (turn: Pick<Turn, 'transport' | 'headers' | 'body'>, bytes: Bytes): Bytes => {
  if (turn.transport === 'websocket') return bytes
  const json = turn.body?.json ?? {}
  // Meaningless over HTTP, but the upstream would act on them on a socket.
  const own = ONLY_IN_FRAMES.some((name) => name in json) ? cutMembers(bytes, ONLY_IN_FRAMES) : bytes
  const marked = turn.headers[LITE_HEADER] === 'true' ? markedLite(own, json) : own
  return putFirst(marked, { type: 'response.create' })
}

const markedLite = (bytes: Bytes, { client_metadata: metadata }: JsonObject): Bytes => {
  const mark = { [LITE_METADATA]: 'true' }
  const place = isObject(metadata) && !(LITE_METADATA in metadata) ? placeOfValue(bytes, 'client_metadata') : null
  if (place !== null) return putFirst(bytes, mark, place)
  return spliceMembers(bytes, { client_metadata: { ...getObject(metadata), ...mark } })
}

/** The body of a POST, without members that apply only to sockets. */
export const asRequest = (turn: Turn, bytes: Bytes): Bytes =>
  turn.transport === 'http' ? bytes : cutMembers(bytes, ONLY_IN_FRAMES)

/** For a handshake: declares the protocol version; lite is marked per frame instead. */
export const handshakeHeaders = ({ headers }: Turn): Record<string, string> => {
  const { [LITE_HEADER]: _lite, ...kept } = headers
  return { ...kept, 'openai-beta': [...otherBetas(headers), SOCKETS_BETA].join(', ') }
}

/** For a POST, also when the client's headers came from a handshake. */
export const requestHeaders = ({ headers, transport, body }: Turn): Record<string, string> => {
  if (transport === 'http') return headers
  const kept: Record<string, string> = { ...headers, 'openai-beta': otherBetas(headers).join(', ') }
  if (kept['openai-beta'] === '') delete kept['openai-beta']
  if (isLiteFrame(body?.json)) kept[LITE_HEADER] = 'true'
  return kept
}

const isLiteFrame = (json: JsonObject | undefined): boolean =>
  getObject(json?.client_metadata)[LITE_METADATA] === 'true'

/** `responses=experimental` is the older opt-in to sockets. */
const otherBetas = (headers: Turn['headers']): string[] =>
  (headers['openai-beta'] ?? '')
    .split(',')
    .map((beta) => beta.trim())
    .filter((beta) => beta !== '' && beta !== 'responses=experimental' && !beta.startsWith('responses_websockets='))
