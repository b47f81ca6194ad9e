/** Real receivers of alerts on this machine: HTTP servers that check what they get, and mail servers. */

import type { AddressInfo } from 'node:net'
import { createServer, type Server } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { signWebhook } from '../../src/upstream/alerts/requests.ts'

export interface Received {
  path: string
  headers: Headers
  body: string
}

/** Answers with `answer`, and keeps what it got. */
export const httpReceiver = (answer: (got: Received) => Response | Promise<Response> = () => new Response('ok')) => {
  const got: Received[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url)
      const one = { path: pathname + search, headers: request.headers, body: await request.text() }
      got.push(one)
      return answer(one)
    },
  })
  return { got, url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
}

/** As a receiver would check a webhook: 401 for a wrong signature. */
export const verifyingReceiver = (secret: string) =>
  httpReceiver(({ headers, body }) => {
    const timestamp = headers.get('x-sluice-timestamp') ?? ''
    const delivery = headers.get('x-sluice-delivery') ?? ''
    const isRight = headers.get('x-sluice-signature') === signWebhook(secret, { timestamp, delivery, body })
    return new Response('', { status: isRight ? 204 : 401 })
  })

export interface Push {
  topic: string
  title: string
  message: string
  priority: number
  tags: string[]
  click?: string
}

/** Publishes JSON at its root as ntfy does, for topics that need `token`. */
export const ntfyReceiver = (token: string | null = null) => {
  const pushes: Push[] = []
  const server = httpReceiver(({ path, headers, body }) => {
    if (token !== null && headers.get('authorization') !== `Bearer ${token}`) return new Response('', { status: 403 })
    const push = path === '/' ? (JSON.parse(body) as Push) : null // as: checked below
    if (!push || !/^[-_A-Za-z0-9]{1,64}$/.test(push.topic) || !(push.priority >= 1 && push.priority <= 5))
      return new Response('{"code":40009}', { status: 400 })
    pushes.push(push)
    return Response.json({ id: 'a', event: 'message', topic: push.topic })
  })
  return { ...server, pushes }
}

export interface Mail {
  from: string
  to: string[]
  user: string | null
  isSecure: boolean
  text: string
}

/** With STARTTLS, and sign-in as `anna` with the password `letter`. `logins` has the user names that were sent. */
export const mailReceiver = async (options: SMTPServerOptions = {}) => {
  const mails: Mail[] = []
  const logins: string[] = []
  const server = new SMTPServer({
    authOptional: true,
    logger: false,
    onAuth: ({ username, password }, _session, done) => {
      logins.push(username ?? '')
      return username === 'anna' && password === 'letter'
        ? done(null, { user: username })
        : done(Object.assign(new Error('Your words: secret'), { responseCode: 535 }))
    },
    onData: async (stream, session, done) => {
      const { mailFrom, rcptTo } = session.envelope
      const mail = {
        from: mailFrom === false ? '' : mailFrom.address,
        to: rcptTo.map(({ address }) => address),
        user: session.user ?? null,
        isSecure: session.secure,
      }
      mails.push({ ...mail, text: await new Response(stream as never).text() }) // as: a readable stream
      done()
    },
    ...options,
  })
  server.on('error', () => {}) // clients that leave
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  const { port } = server.server.address() as AddressInfo // as: it listens on TCP
  return { mails, logins, port, stop: () => server.close() }
}

/** Accepts connections and sends nothing but `greeting`. */
export const silentServer = async (greeting = '') => {
  const server: Server = createServer((socket) => {
    socket.on('error', () => {}) // clients that leave
    socket.resume() // notices the end of the connection only if it reads
    if (greeting) socket.write(greeting)
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  const { port } = server.address() as AddressInfo // as: it listens on TCP
  return {
    port,
    connections: () => new Promise<number>((done) => server.getConnections((_, count) => done(count))),
    stop: () => server.close(),
  }
}
