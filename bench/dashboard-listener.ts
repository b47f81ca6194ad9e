/** A dashboard without a browser: it listens for changes and fetches what its page's script would fetch. */
import type { DashboardServer } from './dashboard-server.ts'

interface Part {
  topics: readonly string[]
  path: string
}

/** One on each of `pages`, with a stream of its own and the live tail on. Returns what closes them. */
export async function openListeners(server: DashboardServer, pages: readonly string[]): Promise<() => Promise<void>> {
  const stop = new AbortController()
  const ended = await Promise.all(pages.map((path, n) => listen(server, { path, address: `10.8.0.${n}`, stop })))
  return async () => {
    stop.abort()
    await Promise.all(ended.map(({ ended }) => ended))
  }
}

interface Listening {
  path: string
  address: string
  stop: AbortController
}

/** Resolves when it listens, with what resolves when it has ended. */
async function listen({ url, cookie }: DashboardServer, { path, address, stop }: Listening) {
  const get = (what: string, headers: Record<string, string> = {}) =>
    fetch(url + what, { headers: { cookie, 'x-forwarded-for': address, ...headers }, signal: stop.signal })
  const parts = getParts(await (await get(path, { accept: 'text/html' })).text())
  const stream = (await get('/api/events', { accept: 'text/event-stream' })).body
  const busy = new Set<Part>()
  const renew = async (part: Part) => {
    if (busy.has(part)) return
    busy.add(part)
    await get(part.path, { accept: 'text/html', 'hx-request': 'true' })
      .then((response) => response.text())
      .catch(() => {}) // closed by this side
    busy.delete(part)
  }
  const told = (topics: readonly string[]) => {
    for (const part of parts) if (part.topics.some((topic) => topics.includes(topic))) void renew(part)
  }
  return { ended: hear(stream, told) }
}

/** The parts of a page that are fetched again, and of the log what ended since. */
const getParts = (html: string): Part[] => {
  const text = (value = '') => value.replaceAll('&amp;', '&')
  const live = [...html.matchAll(/data-live="([^"]+)" data-live-src="([^"]+)"/g)].map(([, topics, src]) => ({
    topics: text(topics).split(' '),
    path: text(src),
  }))
  const tail = /data-tail="([^"]+)"/.exec(html)?.[1]
  return tail === undefined ? live : [...live, { topics: ['logs'], path: text(tail) }]
}

async function hear(stream: ReadableStream<Uint8Array> | null, told: (topics: readonly string[]) => void) {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const chunk of stream ?? []) {
      const messages = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
      rest = messages.pop() ?? ''
      for (const message of messages) {
        const topics = /^event: changed\ndata: (.*)$/m.exec(message)?.[1]
        if (topics !== undefined) told(topics.split(' '))
      }
    }
  } catch {
    // closed by this side
  }
}
