/** Finds headers that no well-behaved client or proxy sends to the service. */

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
const FORBIDDEN_PREFIXES = ['x-forwarded-', 'cf-', 'x-codex-lb-', 'x-stainless-', 'sec-fetch-']
const CLIENT_KEY = 'sk-clb-'

/** One sentence per problem; empty when the headers are clean. `streams` tells whether SSE is asked for. */
export function headerOddities(where: string, headers: Record<string, string>, streams: boolean): string[] {
  const found: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    if (FORBIDDEN.has(name) || FORBIDDEN_PREFIXES.some((prefix) => name.startsWith(prefix)))
      found.push(`${where}: the header ${name} must not reach the service`)
    if (value.includes(CLIENT_KEY)) found.push(`${where}: a client API key is in the header ${name}`)
  }
  if (headers.connection && headers.connection.toLowerCase() !== 'keep-alive')
    found.push(`${where}: the hop-by-hop header connection was passed on`)
  if (headers['content-encoding']) found.push(`${where}: the body has content-encoding ${headers['content-encoding']}`)
  if (streams && headers['accept-encoding'] && headers['accept-encoding'] !== 'identity')
    found.push(`${where}: a stream was asked for with accept-encoding ${headers['accept-encoding']}`)
  if (!headers['user-agent']) found.push(`${where}: there is no user-agent`)
  else if (/^bun\//i.test(headers['user-agent'])) found.push(`${where}: the user-agent is Bun's own`)
  return found
}
