/** Headers of an upstream request: an allowlist of the client's, plus ours (decisions §3). */
import { createHash } from 'node:crypto'
import { VERSION } from '../boot/version.ts'
import type { Route } from '../model/egress/route.ts'

const FORWARDED: ReadonlySet<string> = new Set([
  'openai-beta',
  'originator',
  'user-agent',
  'version',
  'session_id',
  'session-id',
  'thread-id',
  'conversation_id',
  'x-openai-internal-codex-responses-lite',
  'x-openai-subagent',
  'x-request-id',
  'x-client-request-id',
  'x-session-affinity',
  'accept-language',
])
const TURN_STATE = 'x-codex-turn-state'
const REASONING_INCLUDED = 'x-reasoning-included'

/** What an account adds to the headers of a request. */
interface Identity {
  id: string
  chatgptAccountId: string | null
  accessToken: string
}

/** What every call of an account needs. */
export interface AccountCredentials extends Identity {
  /** By which every call of the account leaves. */
  route: Route
}

export const USER_AGENT = `sluice/${VERSION}`

/** For requests of our own, answered with uncompressed JSON (`bounded-body.ts`). */
export const PLAIN_JSON_HEADERS = {
  accept: 'application/json',
  'accept-encoding': 'identity',
  'user-agent': USER_AGENT,
} as const

/** The client headers that are passed on, the same for every attempt. */
export const forwardable = (inbound: Headers): Record<string, string> => {
  const named = connectionNames(inbound)
  const kept: Record<string, string> = {}
  inbound.forEach((value, name) => {
    if (value !== '' && isForwarded(name) && !named.has(name)) kept[name] = value
  })
  kept['user-agent'] ??= USER_AGENT
  return kept
}

/** The smallest set: some routes are blocked before the service when more headers come (transcription). */
export const agentOnly = (inbound: Headers): Record<string, string> => ({
  'user-agent': inbound.get('user-agent') || USER_AGENT,
})

/** Assumed: requests about live calls need these as well. */
const LIVE: ReadonlySet<string> = new Set(['openai-alpha', 'x-session-id', 'x-oai-attestation'])
const SIDEBAND: ReadonlySet<string> = new Set([
  ...LIVE,
  'openai-beta',
  'session-id',
  'thread-id',
  'originator',
  'user-agent',
])

export const liveHeaders = (inbound: Headers): Record<string, string> => ({
  ...forwardable(inbound),
  ...only(inbound, LIVE),
})

/** For the WebSocket of a live call, which is not a Responses socket. */
export const sidebandHeaders = (inbound: Headers): Record<string, string> => {
  const { 'openai-beta': betas = '', ...kept } = only(inbound, SIDEBAND)
  const others = betas.split(',').filter((beta) => beta.trim() !== '' && !/^\s*responses_websockets\s*=/i.test(beta))
  if (others.length > 0) kept['openai-beta'] = others.map((beta) => beta.trim()).join(', ')
  kept['user-agent'] ??= USER_AGENT
  return kept
}

const only = (inbound: Headers, names: ReadonlySet<string>): Record<string, string> => {
  const named = connectionNames(inbound)
  const kept: Record<string, string> = {}
  inbound.forEach((value, name) => {
    if (value !== '' && names.has(name) && !named.has(name)) kept[name] = value
  })
  return kept
}

const isForwarded = (name: string): boolean =>
  FORWARDED.has(name) || (name.startsWith('x-codex-') && !name.startsWith('x-codex-lb-'))

const connectionNames = (inbound: Headers): ReadonlySet<string> => {
  const connection = inbound.get('connection')
  if (connection === null || connection === 'keep-alive') return NO_NAMES
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}

const NO_NAMES: ReadonlySet<string> = new Set()

/** Completes `kept` for one account. Turn state is sent only to the account that issued it. */
export const upstreamHeaders = (
  kept: Readonly<Record<string, string>>,
  account: Identity,
  { accept, contentType = null }: { accept: string; contentType?: string | null },
): Record<string, string> => {
  const headers = socketHeaders(kept, account)
  headers.accept = accept
  headers['accept-encoding'] = 'identity'
  if (contentType) headers['content-type'] = contentType
  return headers
}

/** The same for a handshake, which has neither body nor content negotiation. */
export const socketHeaders = (kept: Readonly<Record<string, string>>, account: Identity): Record<string, string> => {
  const headers: Record<string, string> = { ...kept, authorization: `Bearer ${account.accessToken}` }
  if (account.chatgptAccountId) headers['chatgpt-account-id'] = account.chatgptAccountId
  const turnState = kept[TURN_STATE] === undefined ? null : readTurnState(kept[TURN_STATE])
  if (turnState && turnState.owner === accountTag(account.id)) headers[TURN_STATE] = turnState.value
  else delete headers[TURN_STATE]
  return headers
}

/**
 * Upstream headers passed to the client. Values above 8 KiB are dropped: the client would return them with each
 * request, and servers, including this one, reject heads of 16 KiB.
 */
export const toClientHeaders = (answered: Headers, accountId: string): Record<string, string> => {
  const told: Record<string, string> = {}
  const turnState = boundedValue(answered.get(TURN_STATE))
  if (turnState !== null) told[TURN_STATE] = tagTurnState(accountId, turnState)
  const reasoning = boundedValue(answered.get(REASONING_INCLUDED))
  if (reasoning !== null) told[REASONING_INCLUDED] = reasoning
  return told
}

/** Header values have one byte per character. */
const MAX_VALUE_BYTES = 8 * 1024

const boundedValue = (value: string | null): string | null =>
  value !== null && value.length <= MAX_VALUE_BYTES ? value : null

/**
 * Turn state as the client sees it, prefixed with its issuer's tag, so that the issuer is known after a restart without
 * storing anything.
 */
const tagTurnState = (accountId: string, value: string): string => `${accountTag(accountId)}.${value}`

/** Null when not issued here, or too long. */
export const readTurnState = (tagged: string): { owner: string; value: string } | null => {
  const match = /^(st[0-9a-f]{16})\.(.+)$/.exec(tagged)
  const value = boundedValue(match?.[2] ?? null)
  return match && value !== null ? { owner: match[1]!, value } : null // the group is part of the match
}

export const accountTag = (accountId: string): string =>
  `st${createHash('sha256').update(accountId).digest('hex').slice(0, 16)}`
