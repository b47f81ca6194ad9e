/** Reads a request of the stand-in upstream completely, records it and identifies its account. */
import type { Account, SimAccounts } from './accounts.ts'
import type { Ledger, ReceivedHandshake, ReceivedRequest } from './ledger.ts'
import { headerOddities } from './oddities.ts'
import { Refusal } from './refusal.ts'
import { isJson, type Json } from './script.ts'
import type { Mint } from './tokens.ts'

/** Shared by requests and handshakes. */
export type Received = Pick<ReceivedRequest & ReceivedHandshake, 'method' | 'path' | 'headers' | 'account'>

/** Reads and records the request and what is odd about its headers. */
export async function receive(request: Request, now: number, ledger: Ledger): Promise<ReceivedRequest> {
  const url = new URL(request.url)
  const headers = Object.fromEntries(request.headers)
  const received: ReceivedRequest = {
    at: now,
    method: request.method,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    search: url.search,
    account: null,
    headers,
    bodyText: '',
    bytes: NO_BYTES,
    body: null,
    status: null,
    eventsSent: 0,
    connection: null,
    aborted: false,
    finished: false,
  }
  ledger.receive(received)
  const kind = received.path.endsWith('/codex/responses') ? 'stream' : 'plain'
  if (!isForPeople(received))
    for (const sentence of headerOddities(getRouteName(received), headers, kind)) ledger.odd(sentence)
  const bytes = new Uint8Array(await request.arrayBuffer())
  Object.defineProperty(received, 'bytes', { value: bytes, enumerable: false })
  received.bodyText = decode(bytes, headers['content-encoding'])
  received.body = parse(received.bodyText)
  return received
}

const NO_BYTES = new Uint8Array()

/** Browsers open these, with the headers that browsers send. */
function isForPeople({ method, path }: Received): boolean {
  return method === 'GET' && /^\/(oauth\/|favicon)/.test(path)
}

/** `POST /path`, the start of every oddity about a request. */
export function getRouteName({ method, path }: Received): string {
  return `${method} ${path}`
}

/**
 * The account of the request's access token; throws 401 when there is none, it is no longer valid, or the request names
 * another account.
 */
export function authenticate(received: Received, accounts: SimAccounts, ledger: Ledger): Account {
  const token = /^Bearer (.+)$/i.exec(received.headers.authorization ?? '')?.[1]
  const account = token === undefined ? undefined : accounts.byAccessToken(token)
  if (token === undefined || !account) throw new Refusal(401, { detail: 'Unauthorized' })
  received.account = account.chatgptAccountId
  const code = account.accessRefusal(token)
  if (code) {
    const error = { message: 'The access token was refused.', type: null, code, param: null }
    throw new Refusal(401, { error, status: 401 })
  }
  const named = received.headers['chatgpt-account-id']
  if (named !== account.chatgptAccountId) {
    const who = named === undefined ? 'no chatgpt-account-id' : 'the chatgpt-account-id of another account'
    ledger.odd(`${getRouteName(received)}: the token of ${account.email} came with ${who}`)
    throw new Refusal(401, { detail: 'Unauthorized' })
  }
  noteTurnState(received, account, ledger)
  return account
}

/** Turn state is `ts.<account>.<id>`, opaque to others and only valid for its issuer. */
function turnStateFor(account: Account, id: string): string {
  return `ts.${account.chatgptAccountId}.${id}`
}

/** The turn state of the response: the client's own when this account issued it, else a new one. */
export function continueTurn(received: Received, account: Account, mint: Mint): string {
  const state = received.headers['x-codex-turn-state']
  return state?.startsWith(turnStateFor(account, '')) ? state : turnStateFor(account, mint('turn'))
}

function noteTurnState(received: Received, account: Account, ledger: Ledger): void {
  const state = received.headers['x-codex-turn-state']
  if (state === undefined || state.startsWith(turnStateFor(account, ''))) return
  ledger.odd(`${getRouteName(received)}: ${account.email} got an x-codex-turn-state that it did not issue`)
}

const LITE_HEADER = 'x-openai-internal-codex-responses-lite'
const LITE_FIELD = 'ws_request_header_x_openai_internal_codex_responses_lite'

/**
 * The native client marks every body with `additional_tools`: by a header, on a socket by a field of the client
 * metadata (client-protocol §3.2, §5).
 */
export function noteLiteMarker(received: ReceivedRequest, ledger: Ledger): void {
  if (!isJson(received.body) || !Array.isArray(received.body.input)) return
  if (!received.body.input.some((item) => isJson(item) && item.type === 'additional_tools')) return
  const where = `${getRouteName(received)}: a body with additional_tools came`
  if (received.connection === null) {
    if (received.headers[LITE_HEADER] !== 'true') ledger.odd(`${where} without the responses-lite header`)
  } else if (getMetadata(received.body)[LITE_FIELD] !== 'true')
    ledger.odd(`${where} without ${LITE_FIELD} in its client_metadata`)
}

function getMetadata({ client_metadata }: Json): Json {
  return isJson(client_metadata) ? client_metadata : {}
}

function decode(bytes: Uint8Array<ArrayBuffer>, encoding: string | undefined): string {
  const plain =
    encoding === 'zstd' ? Bun.zstdDecompressSync(bytes) : encoding === 'gzip' ? Bun.gunzipSync(bytes) : bytes
  return new TextDecoder().decode(plain)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null // not JSON: the judge says what that means for the route
  }
}
