/** The link that signs a browser in to the demo: a small server on 127.0.0.1 that sets the session cookie. */
import { systemRandom } from '../../src/lib/random.ts'

interface SignIn {
  /** Base URL of the demo's dashboard. */
  url: string
  username: string
  password: string
}

/** The link. Cookies are shared by all ports of a host, so the browser sends it to the dashboard too. */
export const startSignIn = ({ url, ...credentials }: SignIn): string => {
  const path = `/${systemRandom.token(16)}`
  const { port } = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60, // hashing takes a while on a busy machine
    fetch: async (request) => {
      const { pathname, host } = new URL(request.url)
      if (pathname !== path || host !== `127.0.0.1:${port}`) return new Response('Not found\n', { status: 404 })
      const signedIn = await fetch(`${url}/api/dashboard-auth/password/login`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          'user-agent': request.headers.get('user-agent') ?? '',
        },
        body: JSON.stringify(credentials),
      })
      if (!signedIn.ok) return new Response(await signedIn.text(), { status: signedIn.status })
      const headers = new Headers({ location: `${url}/dashboard`, 'cache-control': 'no-store' })
      for (const cookie of signedIn.headers.getSetCookie()) headers.append('set-cookie', cookie)
      return new Response(null, { status: 303, headers })
    },
  })
  return `http://127.0.0.1:${port}${path}`
}
