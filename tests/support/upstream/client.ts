/** A well-behaved client of the stand-in upstream, to test it directly. */
import type { Account } from './accounts.ts'
import type { Upstream } from './app.ts'
import { CLIENT_ID } from './oauth.ts'
import type { Json } from './script.ts'

const ORIGIN = 'http://upstream.test'
export type Event = { type: string; sequence_number?: number; response: Json; item: Json; [field: string]: unknown }

/** The request of the native client for this account. */
export function getHeaders(account: Account, more: Record<string, string> = {}): Record<string, string> {
  return {
    authorization: `Bearer ${account.accessToken}`,
    'chatgpt-account-id': account.chatgptAccountId,
    accept: 'text/event-stream',
    'accept-encoding': 'identity',
    'content-type': 'application/json',
    'user-agent': 'codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm',
    ...more,
  }
}

/** The headers of the native client to open a socket for this account. */
export function getHandshake(account: Account, more: Record<string, string> = {}): Record<string, string> {
  return {
    authorization: `Bearer ${account.accessToken}`,
    'chatgpt-account-id': account.chatgptAccountId,
    'user-agent': 'codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm',
    originator: 'codex_exec',
    'openai-beta': 'responses_websockets=2026-02-06',
    ...more,
  }
}

/** A user message. */
export const says = (text: string): Json => ({
  type: 'message',
  role: 'user',
  content: [{ type: 'input_text', text }],
})

/** The smallest body that ChatGPT accepts. */
export const aBody = (more: Json = {}): Json => ({
  model: 'gpt-5.5',
  instructions: 'Be brief.',
  input: [says('hello')],
  stream: true,
  store: false,
  ...more,
})

/** The smallest frame that requests a response. */
export const aCreate = (more: Json = {}): Json => ({ type: 'response.create', ...aBody(more) })

/** `at` sends over a socket to that origin instead of in process. */
export type Ask = { body?: Json; headers?: Record<string, string>; signal?: AbortSignal; at?: string; path?: string }

export function ask(upstream: Upstream, account: Account, options: Ask = {}): Promise<Response> {
  const { body = aBody(), headers = {}, signal, at, path = '/backend-api/codex/responses' } = options
  const send = at === undefined ? upstream.fetch : fetch
  const init = { method: 'POST', headers: getHeaders(account, headers), body: JSON.stringify(body) }
  return send(`${at ?? ORIGIN}${path}`, signal ? { ...init, signal } : init)
}

/** Reads a stream to its end; every block must be a named event. */
export async function getEvents(response: Response): Promise<Event[]> {
  const blocks = (await response.text()).split('\n\n').filter((block) => block !== '')
  return blocks.map((block) => {
    const [name, data] = block.split('\n')
    const event = JSON.parse(data?.replace('data: ', '') ?? '')
    if (name !== `event: ${event.type}`) throw new Error(`The block is named ${name}, its data ${event.type}.`)
    return event
  })
}

/** The id of the response that these events end. */
export const idOf = (events: Event[]) => events.at(-1)?.response.id
export function refresh(upstream: Upstream, refreshToken: string, more: Json = {}): Promise<Response> {
  const body = { client_id: CLIENT_ID, grant_type: 'refresh_token', refresh_token: refreshToken, ...more }
  const headers = { 'content-type': 'application/json', 'user-agent': 'codex_exec/0.169.0' }
  return upstream.fetch(`${ORIGIN}/oauth/token`, { method: 'POST', headers, body: JSON.stringify(body) })
}
