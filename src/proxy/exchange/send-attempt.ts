/**
 * Sends one attempt to the upstream over the fitting transport, as the body of a POST or as the `response.create` frame of a
 * socket (Codex CLI 0.169), up to the point where the upstream accepts it.
 */
import { AppError } from '../../errors.ts'
import { getObject, isObject, type JsonObject } from '../../lib/json.ts'
import { placeOfValue } from '../../lib/json-members.ts'
import { getEgressReason } from '../../model/egress/route.ts'
import { errorText, isCompressed } from '../../upstream/bounded-body.ts'
import type { AccountCredentials } from '../../upstream/headers.ts'
import { connect, openTurn } from '../../upstream/open.ts'
import { HandshakeRejected, SocketClosed } from '../../upstream/socket-errors.ts'
import { DocumentStream, SseStream, type UpstreamStream } from '../../upstream/stream.ts'
import { cutMembers, putFirst, spliceMembers } from '../ingress/splice.ts'
import type { LiveAccount } from '../pool/live-account.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import type { Turn } from '../turn/turn.ts'
import { PrewarmStream } from './prewarm.ts'
import { isOnHttp, MAX_FRAME_BYTES, recordSocketFailure, shouldFallBackToHttp, transportFor } from './transport.ts'
import type { Connection } from './upstream-session.ts'

interface AttemptLoad {
  account: LiveAccount
  credentials: AccountCredentials
  /** The body for this account, in the client's formatting. */
  bytes: Uint8Array<ArrayBuffer>
  /** The token was refreshed for this turn, so it is valid. */
  isRenewed: boolean
  /** Its sockets failed in this turn. */
  byHttp: boolean
  /** Aborts the attempt. */
  controller: AbortController
}

interface SentAttempt {
  /** Headers of the answer or of the socket handshake; empty on a kept connection. */
  headers: Headers
  stream: UpstreamStream
  /** The token of the connection: a kept one may have been opened with an older token. */
  accessToken: string
}

/** The upstream answered with an error status. */
export class UpstreamStatusError extends Error {
  override readonly name = 'Refused'

  constructor(
    readonly status: number,
    readonly headers: Headers,
    readonly text: string,
    /** The token the request was sent with. */
    readonly accessToken: string,
  ) {
    super(`status ${status}`)
  }
}

/**
 * Rejects with `UpstreamStatusError`, with what the transport throws, or with `previous_response_not_found` when the connection of
 * the chain is lost.
 */
export const sendAttempt = (proxyDeps: ProxyDeps, turn: Turn, load: AttemptLoad): Promise<SentAttempt> => {
  const wanted = transportFor(turn, {
    bytes: load.bytes.length,
    isOnHttp: load.byHttp || isOnHttp(proxyDeps, turn, load.account),
    modelPrefersSockets: turn.model !== null && proxyDeps.prefersSockets(turn.model),
  })
  return wanted === 'http' ? overHttp(proxyDeps, turn, load) : overSocketIfPossible(proxyDeps, turn, load)
}

const overSocketIfPossible = async (proxyDeps: ProxyDeps, turn: Turn, load: AttemptLoad): Promise<SentAttempt> => {
  turn.log.upstreamTransport = 'websocket'
  const frame = asFrame(turn, load.bytes) // may throw, so do it before connecting
  if (frame.length > MAX_FRAME_BYTES) return overHttp(proxyDeps, turn, load)
  const kept = turn.session?.take(load.credentials, proxyDeps.clock.monotonic()) ?? null
  const connection = kept ?? (await newConnection(proxyDeps, turn, load))
  if (!connection) return overHttp(proxyDeps, turn, load)
  const carried = overSocket(proxyDeps, turn, { ...load, frame, connection })
  return { ...carried, headers: kept ? new Headers() : connection.socket.headers }
}

const overHttp = async (
  proxyDeps: ProxyDeps,
  turn: Turn,
  { credentials, bytes, controller }: AttemptLoad,
): Promise<SentAttempt> => {
  if (turn.chain !== null) throw new AppError('previous_response_not_found')
  if (turn.kind === 'prewarm') return prewarmed(proxyDeps, turn, credentials)
  turn.log.upstreamTransport = 'http'
  turn.log.isSent = true
  const response = await openTurn(proxyDeps.upstream, credentials, {
    path: turn.path,
    headers: requestHeaders(turn),
    body: asRequest(turn, bytes),
    accept: turn.accept,
    attempt: controller,
    connectTimeoutMs: turn.settings.connectTimeoutSeconds * 1000,
  })
  const { ok, headers, body } = response
  if (!ok || !body) throw await toStatusError(proxyDeps, response, credentials)
  const isDocument = turn.accept === 'application/json'
  if (!isDocument && isCompressed(response)) throw compressedStream(response)
  const stream = isDocument ? new DocumentStream(response) : new SseStream(body, proxyDeps.clock, turn.passesDeltas)
  return { headers, stream, accessToken: credentials.accessToken }
}

/** HTTP has no prewarm: the upstream would answer the request in full. */
const prewarmed = ({ clock }: ProxyDeps, turn: Turn, { accessToken }: AccountCredentials): SentAttempt => {
  turn.log.upstreamTransport = null
  const createdAt = Math.floor(clock.now() / 1000)
  const stream = new PrewarmStream({ id: turn.id.replace(/^trn/, 'resp'), createdAt, model: turn.model })
  return { headers: new Headers(), stream, accessToken }
}

export const toStatusError = async (
  { clock }: ProxyDeps,
  response: Response,
  { accessToken }: AccountCredentials,
): Promise<UpstreamStatusError> =>
  new UpstreamStatusError(response.status, response.headers, await errorText(response, clock), accessToken)

/** We request no compression, so an intermediary compressed this. The account is not to blame. */
export const compressedStream = (response: Response): AppError => {
  void response.body?.cancel().catch(() => {}) // it may be closed already
  const message = "ChatGPT sent a compressed answer, which Sluice doesn't accept."
  return new AppError('upstream_unreachable', { message })
}

/** An HTTP client gets a socket for this turn only; a socket client keeps it while it stays on this account. */
const overSocket = (
  proxyDeps: ProxyDeps,
  turn: Turn,
  { account, frame, controller, connection }: AttemptLoad & { frame: AttemptLoad['bytes']; connection: Connection },
): Omit<SentAttempt, 'headers'> => {
  const { session } = turn
  turn.log.isSent = true
  const { socket, accountId, accessToken } = connection
  const { signal } = controller
  const stream = socket.turn(frame, (isClean, error) => {
    if (isClean) {
      account.socketFailures = 0
      if (session && proxyDeps.pool.isInUse(accountId)) session.keep(connection)
      else socket.close()
    } else if (!signal.aborted && !(error instanceof SocketClosed && error.isTooLarge))
      recordSocketFailure(proxyDeps, turn, account) // the socket failed, and not because the turn was aborted
  })
  const abort = () => stream.cancel(signal.reason)
  signal.addEventListener('abort', abort, { once: true }) // as fetch does on its own
  if (signal.aborted) abort()
  return { stream, accessToken }
}

/** Null when the turn must use HTTP instead. */
const newConnection = async (proxyDeps: ProxyDeps, turn: Turn, load: AttemptLoad): Promise<Connection | null> => {
  const { account, credentials, isRenewed, controller } = load
  if (turn.chain !== null) throw new AppError('previous_response_not_found')
  try {
    const socket = await connect(proxyDeps.upstream, credentials, {
      path: turn.path,
      headers: handshakeHeaders(turn),
      attempt: controller,
      connectTimeoutMs: turn.settings.connectTimeoutSeconds * 1000,
    })
    return { socket, accountId: account.id, accessToken: credentials.accessToken, route: credentials.route }
  } catch (err) {
    if (controller.signal.aborted || getEgressReason(err)) throw err
    if (shouldFallBackToHttp(proxyDeps, turn, { account, err, isRenewed })) return null
    if (!(err instanceof HandshakeRejected)) throw err
    throw new UpstreamStatusError(err.status, err.headers, err.body, credentials.accessToken)
  }
}

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
