/** The local port for browser sign-in callbacks. It listens only while a sign-in is pending, and serves nothing else. */
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { CALLBACK_PATH } from './oauth-browser.ts'

export interface CallbackAnswer {
  status: number
  title: string
  text: string
  /** Redirects the browser there instead of showing a page. */
  location?: string
}

/** A browser may still be connecting when another one completes the same sign-in. */
const LINGER_MS = 3000

interface ListenerDeps {
  host: string
  port: number
  clock: Clock
  log: Log
  /** Gets the full callback URL and the client address. */
  answer: (url: string, address: string | null) => Promise<CallbackAnswer>
}

export class CallbackListener {
  readonly #deps: ListenerDeps
  #server: Bun.Server<undefined> | null = null
  #cancelClosing: (() => void) | null = null

  constructor(deps: ListenerDeps) {
    this.#deps = deps
  }

  get isOpen(): boolean {
    return this.#server !== null
  }

  /** Listens, unless another program uses the port: the URL can then be pasted by hand. */
  open(): void {
    this.#cancelClosing?.()
    this.#cancelClosing = null
    if (this.#server) return
    const { host, port, log } = this.#deps
    try {
      this.#server = Bun.serve({
        hostname: host,
        port,
        development: false,
        reusePort: false, // see `server.ts`
        fetch: (request, server) => this.#serve(request, server),
      })
    } catch (err) {
      log.info('the port for browser sign-ins is not available; paste the URL instead', { host, port, err })
    }
  }

  /** Closes after a moment, unless opened again. */
  closeSoon(): void {
    if (this.#server) this.#cancelClosing ??= this.#deps.clock.after(LINGER_MS, () => this.close())
  }

  /** Closes now if `closeSoon` was called. */
  closeIfUnused(): void {
    if (this.#cancelClosing) this.close()
  }

  /** Requests being answered are completed. */
  close(): void {
    this.#cancelClosing?.()
    this.#cancelClosing = null
    void this.#server?.stop()
    this.#server = null
  }

  async #serve(request: Request, server: Bun.Server<undefined>): Promise<Response> {
    const url = URL.parse(request.url) // an odd Host header can make it invalid, and an error would log the code
    if (!url) return page({ status: 400, title: 'Invalid URL', text: 'Go back to Sluice and start the sign-in again.' })
    if (request.method !== 'GET' || url.pathname !== CALLBACK_PATH)
      return page({ status: 404, title: 'Page not found', text: 'This port only receives sign-ins from ChatGPT.' })
    const address = server.requestIP(request)?.address ?? null
    try {
      return page(await this.#deps.answer(request.url, address))
    } catch (err) {
      this.#deps.log.error('a sign-in could not be stored', { err })
      return page({ status: 500, title: 'Something went wrong', text: 'Check the log of Sluice, then try again.' })
    }
  }
}

/** The URL contains the code: never cached, and sent as no referrer. Closes the connection so that the port becomes free. */
const page = ({ status, title, text, location }: CallbackAnswer): Response =>
  new Response(`<!doctype html><meta charset="utf-8"><title>${title} · Sluice</title><h1>${title}</h1><p>${text}</p>`, {
    status: location ? 302 : status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'",
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      connection: 'close',
      ...(location && { location }),
    },
  })
