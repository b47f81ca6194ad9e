/**
 * A stand-in for an OpenAI-compatible server, as strict as such servers are, with faults on command. Its host in tests
 * is `source.test`; `fetch` accepts any URL, so several stand-ins can have several names.
 */
import {
  chatAnswer,
  chatFrames,
  embeddingsAnswer,
  responsesAnswer,
  responsesFrames,
  transcriptionAnswer,
} from './answers.ts'

export const SOURCE_URL = 'http://source.test/v1'

export type SourceFault =
  /** A page where JSON is expected, with status 200. */
  | 'html'
  | 'html_error'
  | 'not_json'
  | 'empty'
  /** A body that never ends: of JSON, or of SSE comments. */
  | 'endless'
  /** Headers never arrive. */
  | 'hang'
  /** A stream that never continues after its first frame. */
  | 'stall'
  /** A stream that ends without its last event, or breaks off. */
  | 'cut'
  | 'broken'
  /** Content-Length larger or smaller than the body. */
  | 'long_length'
  | 'short_length'
  | 'redirect'
  /** 401, and the key in the message. */
  | 'echo_key'
  | 'forbidden'
  | 'rate_limited'
  | 'server_error'
  | 'unreachable'
  /** Usage is not reported. */
  | 'no_usage'

export interface SourceRequest {
  method: string
  /** `/v1/chat/completions` */
  path: string
  host: string
  headers: Headers
  /** Parsed JSON, or fields of a form; null: none. */
  body: Record<string, unknown> | null
}

interface SourceOptions {
  /** Null: open to everyone. */
  key?: string | null
  models?: readonly string[]
  /** Which routes exist; others answer 404. */
  routes?: readonly SourceRoute[]
}

export type SourceRoute = '/models' | '/chat/completions' | '/responses' | '/embeddings' | '/audio/transcriptions'
const ALL: readonly SourceRoute[] = [
  '/models',
  '/chat/completions',
  '/responses',
  '/embeddings',
  '/audio/transcriptions',
]

interface Armed {
  fault: SourceFault
  on: SourceRoute | null
  times: number
}

export type StandInSource = ReturnType<typeof createSource>

export const createSource = ({
  key = 'sk-source-secret-key',
  models = ['llama-4'],
  routes = ALL,
}: SourceOptions = {}) => {
  const received: SourceRequest[] = []
  let armed: Armed[] = []
  const state = { models: [...models], routes: [...routes] as string[], key }
  const faultFor = (path: string): SourceFault | null => {
    const found = armed.find(({ on, times }) => times > 0 && (on === null || path.endsWith(on)))
    if (!found) return null
    found.times--
    return found.fault
  }
  const serve = async (request: Request): Promise<Response> => {
    const { pathname, host } = new URL(request.url)
    const body = await getBody(request)
    const { method, headers } = request
    received.push({ method, path: pathname, host: headers.get('host') ?? host, headers, body })
    const fault = faultFor(pathname)
    const broken = fault && faulty(fault, { request, path: pathname })
    if (broken) return broken
    if (state.key !== null && headers.get('authorization') !== `Bearer ${state.key}`)
      return problem(401, 'Incorrect API key provided.', 'invalid_api_key')
    const path = pathname.replace(/^\/v1/, '')
    if (!pathname.startsWith('/v1/') || !state.routes.includes(path)) return problem(404, `No route ${pathname}.`, null)
    return answer(path, { method, body, models: state.models, fault })
  }
  return {
    received,
    /** The last request of a route. */
    last: (route: SourceRoute) => received.findLast(({ path }) => path.endsWith(route)),
    state,
    /** The next `times` requests (of `on`) fail so; `Infinity` until `heal`. */
    fail: (fault: SourceFault, { on = null, times = Number.POSITIVE_INFINITY }: Partial<Omit<Armed, 'fault'>> = {}) =>
      void armed.push({ fault, on, times }),
    heal: () => {
      armed = []
    },
    fetch: (url: string, init: RequestInit = {}): Promise<Response> => {
      const { signal, ...rest } = init
      const work = serve(new Request(url, rest))
      return signal ? Promise.race([work, aborted(signal)]) : work
    },
    /** On a real port, for clients and for what only a socket shows. */
    listen: (hostname = '127.0.0.1') => Bun.serve({ port: 0, hostname, idleTimeout: 0, fetch: serve }),
  }
}

interface Call {
  method: string
  body: SourceRequest['body']
  models: readonly string[]
  fault: SourceFault | null
}

const answer = (path: string, { method, body, models, fault }: Call): Response => {
  if (path === '/models')
    return method === 'GET'
      ? json({ object: 'list', data: models.map((id) => ({ id, object: 'model', created: 1, owned_by: 'stand-in' })) })
      : problem(405, 'Method not allowed.', null)
  if (method !== 'POST' || body === null) return problem(400, 'A JSON body is needed.', null)
  const { model } = body
  if (typeof model !== 'string' || !models.includes(model))
    return problem(404, `The model \`${String(model)}\` does not exist.`, 'model_not_found')
  switch (path) {
    case '/chat/completions':
      return chat(body, model, fault)
    case '/responses':
      return responses(body, model, fault)
    case '/embeddings':
      return embeddings(body, model)
    default:
      return body.file instanceof File ? json(transcriptionAnswer()) : problem(400, '`file` is needed.', null)
  }
}

const chat = (body: Record<string, unknown>, model: string, fault: SourceFault | null): Response => {
  if (!Array.isArray(body.messages) || body.messages.length === 0) return problem(400, '`messages` is needed.', null)
  if (body.stream_options && body.stream !== true) return problem(400, '`stream_options` needs `stream`.', null)
  const options = body.stream_options as { include_usage?: unknown } | undefined // as: read loosely
  const usage = fault !== 'no_usage' && (body.stream !== true || options?.include_usage === true)
  const reply = { model, usage, tool: getTool(body) }
  return body.stream === true ? stream(chatFrames(reply), fault) : json(chatAnswer(reply))
}

const HOSTED = ['web_search', 'web_search_preview', 'file_search', 'computer_use_preview', 'code_interpreter', 'mcp']

const responses = (body: Record<string, unknown>, model: string, fault: SourceFault | null): Response => {
  if (typeof body.input !== 'string' && !Array.isArray(body.input)) return problem(400, '`input` is needed.', null)
  const hosted = getTools(body).find(({ type }) => HOSTED.includes(String(type)))
  if (hosted) return problem(400, `Tool type ${String(hosted.type)} is not supported.`, 'unsupported_tool')
  const reply = { model, usage: fault !== 'no_usage', tool: getTool(body) }
  return body.stream === true ? stream(responsesFrames(reply), fault) : json(responsesAnswer(reply))
}

const embeddings = ({ input }: Record<string, unknown>, model: string): Response => {
  if (typeof input !== 'string' && !Array.isArray(input)) return problem(400, '`input` is needed.', null)
  return json(embeddingsAnswer(model, Array.isArray(input) ? input.length : 1))
}

const getTools = ({ tools }: Record<string, unknown>): Record<string, unknown>[] =>
  Array.isArray(tools) ? (tools as Record<string, unknown>[]) : [] // as: read loosely

/** Calls the first tool when the client requires one. */
const getTool = (body: Record<string, unknown>): string | null => {
  const [tool] = getTools(body)
  if (body.tool_choice !== 'required' || !tool) return null
  const inner = tool.function as { name?: unknown } | undefined // as: chat nests it
  return String(inner?.name ?? tool.name)
}

const json = (value: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  Response.json(value, { status, headers })

const problem = (status: number, message: string, code: string | null): Response =>
  json({ error: { message, type: 'invalid_request_error', param: null, code } }, status)

const HTML = '<!doctype html><title>Sign in</title><p>Please sign in to continue.'

interface Spoilt {
  request: Request
  path: string
}

/** Null: the response itself is created, and altered later. */
const faulty = (fault: SourceFault, { request }: Spoilt): Response | Promise<Response> | null => {
  const key = request.headers.get('authorization')?.replace('Bearer ', '') ?? ''
  switch (fault) {
    case 'html':
      return new Response(HTML, { headers: { 'content-type': 'text/html' } })
    case 'html_error':
      return new Response(HTML, { status: 502, headers: { 'content-type': 'text/html' } })
    case 'not_json':
      return new Response('{"object": "list", "data": [', { headers: { 'content-type': 'application/json' } })
    case 'empty':
      return new Response('', { headers: { 'content-type': 'application/json' } })
    case 'endless':
      return new Response(endless(), { headers: { 'content-type': 'application/json' } })
    case 'hang':
      return new Promise(() => {})
    case 'long_length':
      return new Response('{}', { headers: { 'content-type': 'application/json', 'content-length': '1000' } })
    case 'short_length':
      return new Response('{"object":"list"}', {
        headers: { 'content-type': 'application/json', 'content-length': '3' },
      })
    case 'redirect':
      return new Response(null, { status: 302, headers: { location: 'http://169.254.169.254/latest/meta-data/' } })
    case 'echo_key':
      return problem(401, `Incorrect API key provided: ${key}. Find yours at ${encodeURIComponent(key)}.`, key)
    case 'forbidden':
      return problem(403, 'This key may not do this.', 'forbidden')
    case 'rate_limited':
      return json({ error: { message: 'Slow down.', type: 'rate_limit_error', code: 'rate_limit_exceeded' } }, 429, {
        'retry-after': '7',
      })
    case 'server_error':
      return problem(500, 'The model crashed.', null)
    case 'unreachable':
      return Promise.reject(Object.assign(new Error('Unable to connect.'), { code: 'ConnectionRefused' }))
    default:
      return null
  }
}

const endless = (): ReadableStream<Uint8Array> => {
  const chunk = Buffer.alloc(64 * 1024, ' ')
  return new ReadableStream({ pull: (controller) => controller.enqueue(chunk) })
}

/** One frame per pull, spoilt by `fault`. */
const stream = (frames: readonly string[], fault: SourceFault | null): Response => {
  let at = 0
  const half = Math.floor(frames.length / 2)
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      if (fault === 'stall' && at === 1) return new Promise<void>(() => {})
      if (fault === 'broken' && at === half) return controller.error(new Error('The connection was reset.'))
      const frame = fault === 'cut' && at === half ? undefined : frames[at++]
      if (frame === undefined) controller.close()
      else controller.enqueue(Buffer.from(frame))
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason))
  })

const getBody = async (request: Request): Promise<SourceRequest['body']> => {
  if (request.body === null) return null
  const kind = request.headers.get('content-type') ?? ''
  if (kind.startsWith('multipart/')) return Object.fromEntries(await request.formData())
  const value: unknown = JSON.parse((await request.text()) || 'null')
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null // as: checked
}
