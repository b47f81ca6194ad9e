/** A small reverse proxy without upgrades that fails on demand. */

interface ProxyFaults {
  /** Passes a response on when it is complete, or what has arrived of it after so many ms. */
  buffers?: boolean | number
  /** Larger bodies are rejected as by nginx, with 413 and a page of HTML. */
  maxBytes?: number
  /** Passes on half of a body that is larger than a KiB. */
  cutsUploads?: boolean
  /** Like nginx by default. */
  dropsUnderscores?: boolean
  /** Path prefixes it does not know: 404 and a page of HTML. */
  hides?: readonly string[]
  /** Path prefixes that require a sign-in elsewhere. */
  guards?: readonly string[]
}

interface FaultyProxy extends AsyncDisposable {
  /** Origin without a trailing slash. */
  url: string
}

const KIB = 1024

/** In front of `target`, an origin. */
export const faultyProxy = (target: string, faults: ProxyFaults): FaultyProxy => {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url)
      const body = await request.bytes()
      if (faults.hides?.some((prefix) => pathname.startsWith(prefix))) return htmlPage(404, 'Not Found')
      if (faults.guards?.some((prefix) => pathname.startsWith(prefix)))
        return Response.redirect('http://sign-in.example.test/')
      if (body.length > (faults.maxBytes ?? Number.POSITIVE_INFINITY)) return htmlPage(413, 'Request Entity Too Large')
      const isCut = faults.cutsUploads === true && body.length > KIB
      const answer = await fetch(target + pathname + search, {
        method: request.method,
        headers: getHeaders(request, faults),
        decompress: false,
        redirect: 'manual',
        ...(body.length > 0 && { body: isCut ? body.subarray(0, body.length / 2) : body }),
      })
      const init = { status: answer.status, headers: answer.headers }
      return new Response(await getBody(answer, faults), init)
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) }
}

const getBody = async (answer: Response, { buffers }: ProxyFaults): Promise<BodyInit | null> => {
  if (typeof buffers === 'number') return answer.body?.pipeThrough(emptiedAfter(buffers)) ?? null
  return buffers ? answer.arrayBuffer() : answer.body
}

/** A buffer that is emptied once, after `ms`, and at the end; a browser that has left by then gets nothing. */
const emptiedAfter = (ms: number): TransformStream<Uint8Array, Uint8Array> => {
  const held: Uint8Array[] = []
  let hasLeft = false
  const empty = (out: TransformStreamDefaultController<Uint8Array>) => {
    if (held.length > 0 && !hasLeft) out.enqueue(Buffer.concat(held.splice(0)))
  }
  // `cancel` is in the Streams standard and in Bun, but not in TypeScript's types yet.
  const transformer: Transformer<Uint8Array, Uint8Array> & { cancel: () => void } = {
    start: (out) => void setTimeout(empty, ms, out),
    transform: (piece) => void held.push(piece),
    flush: empty,
    cancel: () => {
      hasLeft = true
    },
  }
  return new TransformStream(transformer)
}

const getHeaders = (request: Request, { dropsUnderscores = false }: ProxyFaults): Headers => {
  const headers = new Headers(request.headers)
  for (const name of ['upgrade', 'connection', 'content-length']) headers.delete(name)
  for (const name of [...headers.keys()]) if (dropsUnderscores && name.includes('_')) headers.delete(name)
  return headers
}

const htmlPage = (status: number, title: string): Response =>
  new Response(`<html><head><title>${status} ${title}</title></head></html>`, {
    status,
    headers: { 'content-type': 'text/html' },
  })
