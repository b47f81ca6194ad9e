/** Finds headers that no well-behaved client or proxy sends to ChatGPT. */

const FORBIDDEN = new Set([
  'cookie',
  'x-api-key',
  'forwarded',
  'via',
  'x-real-ip',
  'true-client-ip',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
/** Headers of a request with a body, or of one route, that mean nothing on an upgrade. */
const NOT_ON_HANDSHAKE = new Set([
  'content-type',
  'content-length',
  'sec-websocket-protocol',
  'x-openai-internal-codex-responses-lite',
])
const FORBIDDEN_PREFIXES = ['x-forwarded-', 'cf-', 'x-codex-lb-', 'x-stainless-', 'sec-fetch-']
const CLIENT_KEY = 'sk-clb-'

/** `stream` requests SSE, `handshake` an upgrade to a socket, `sideband` one to that of a live call. */
type RequestKind = 'plain' | 'stream' | 'handshake' | 'sideband'

/** One sentence per problem; empty when the headers are clean. */
export function headerOddities(where: string, headers: Record<string, string>, kind: RequestKind): string[] {
  const found: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    if (isForbidden(name, kind)) found.push(`${where}: the header ${name} must not reach the service`)
    if (value.includes(CLIENT_KEY)) found.push(`${where}: a client API key is in the header ${name}`)
  }
  const connection = kind === 'handshake' || kind === 'sideband' ? 'upgrade' : 'keep-alive'
  if (headers.connection && headers.connection.toLowerCase() !== connection)
    found.push(`${where}: the hop-by-hop header connection was passed on`)
  if (headers['content-encoding']) found.push(`${where}: the body has content-encoding ${headers['content-encoding']}`)
  if (kind === 'stream' && headers['accept-encoding'] && headers['accept-encoding'] !== 'identity')
    found.push(`${where}: a stream was asked for with accept-encoding ${headers['accept-encoding']}`)
  if (!headers['user-agent']) found.push(`${where}: there is no user-agent`)
  else if (/^bun\//i.test(headers['user-agent'])) found.push(`${where}: the user-agent is Bun's own`)
  return found
}

function isForbidden(name: string, kind: RequestKind): boolean {
  if (kind === 'sideband')
    return name !== 'upgrade' && name !== 'sec-websocket-protocol' && isForbidden(name, 'handshake')
  if (kind === 'handshake' && name === 'upgrade') return false
  if (kind === 'handshake' && NOT_ON_HANDSHAKE.has(name)) return true
  return FORBIDDEN.has(name) || FORBIDDEN_PREFIXES.some((prefix) => name.startsWith(prefix))
}
