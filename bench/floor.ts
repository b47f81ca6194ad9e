/**
 * The floor: the minimum of a streaming proxy on this Bun. No authentication, log or routing; only fetch and its own
 * reader.
 */

const upstream = process.env.BENCH_UPSTREAM_URL ?? 'http://127.0.0.1:9'
const hopByHop = ['connection', 'host', 'content-length', 'transfer-encoding', 'keep-alive']

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: Number(process.env.PORT ?? 0),
  development: false,
  idleTimeout: 0,
  fetch: passThrough,
})
console.log(JSON.stringify({ port: server.port }))

async function passThrough(request: Request): Promise<Response> {
  const path = request.url.slice(request.url.indexOf('/', 8))
  // Reading the body whole costs a tenth less CPU than passing the stream on (Bun 1.4.5), and the floor is the cheapest
  // way.
  const answer = await fetch(upstream + path, {
    method: request.method,
    headers: without(request.headers, { 'accept-encoding': 'identity' }),
    body: request.method === 'GET' ? null : await request.arrayBuffer(),
    signal: request.signal,
    proxy: false,
    timeout: false,
    redirect: 'manual',
  } as RequestInit) // `proxy: false` and `timeout: false` are Bun options that the DOM type does not know
  return new Response(answer.body && relay(answer.body), {
    status: answer.status,
    headers: without(answer.headers, {}),
  })
}

function relay(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel() {
      reader.cancel().catch(() => {})
    },
  })
}

function without(headers: Headers, extra: Record<string, string>): Headers {
  const copy = new Headers(headers)
  for (const name of hopByHop) copy.delete(name)
  for (const [name, value] of Object.entries(extra)) copy.set(name, value)
  return copy
}
