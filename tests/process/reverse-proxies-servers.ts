/** Real reverse proxies with the configurations of docs/reverse-proxies.md; only ports, hosts and file paths differ. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { libraryPath } from '../../scripts/programs.ts'
import { getCodeBlocks } from '../support/fenced.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'
import { cert, key } from './reverse-proxies-certificate.ts'

export const MANUAL = 'docs/reverse-proxies.md'

export interface ProxyServer extends AsyncDisposable {
  /** It listens there on 127.0.0.1, with TLS except for HAProxy. */
  port: number
}

interface Behind {
  /** Where Sluice listens, on 127.0.0.1. */
  port: number
  /** The address of the identity provider. */
  identityPort?: number
}

/** A proxy: its program and how to write its configuration. */
type Start = (program: string, behind: Behind) => Promise<ProxyServer>

export const startNginx: Start = (program, behind) =>
  nginx(program, (site) => site.adapted(getCodeBlocks(MANUAL, 'nginx', 'nginx').join('')), behind)

/** The same with `location /` replaced as the document says. */
export const startIdentityNginx: Start = (program, behind) =>
  nginx(
    program,
    (site) => {
      const [whole = ''] = getCodeBlocks(MANUAL, 'nginx', 'nginx')
      const [lines = ''] = getCodeBlocks(MANUAL, 'A proxy that signs people in', 'nginx')
      const text = whole.replace(/^ {4}location \/ \{[^}]*\}\n/m, () => lines)
      if (text === whole) throw new Error('The server block has no location that could be replaced.')
      return site.adapted(text)
    },
    behind,
  )

/** The text goes into the Advanced box of Nginx Proxy Manager. */
export const startProxyManager: Start = (program, behind) =>
  nginx(program, (site) => managed(site, getCodeBlocks(MANUAL, 'Nginx Proxy Manager', 'nginx').join('')), behind)

export const startCaddy: Start = (program, behind) =>
  caddy(
    program,
    getCodeBlocks(MANUAL, 'Caddy', 'caddyfile')[0]!.replaceAll(/127\.0\.0\.1:2455\b/g, `127.0.0.1:${behind.port}`),
  )

const caddy = (program: string, site: string): Promise<ProxyServer> =>
  launch((folder) => {
    const port = freePort()
    const adapted = site.replace(
      'llm.example.com {',
      `https://llm.example.com:${port} {\n    bind 127.0.0.1\n    tls ${filesIn(folder)}`,
    )
    const path = join(folder, 'Caddyfile')
    writeFileSync(path, `{\n    admin off\n    auto_https disable_redirects\n    skip_install_trust\n}\n${adapted}`)
    return { port, argv: [program, 'run', '--config', path, '--adapter', 'caddyfile'] }
  })

const NODES_MANUAL = 'docs/scaling.md'

const onThisMachine = (text: string, ports: readonly number[]): string =>
  ports.reduce((changed, port, index) => changed.replaceAll(`node${index + 1}:2455`, `127.0.0.1:${port}`), text)

/** In front of nodes, on 127.0.0.1. */
export const startNodesNginx = (program: string, ports: readonly number[]): Promise<ProxyServer> =>
  nginx(program, (site) => site.adapted(onThisMachine(getCodeBlocks(NODES_MANUAL, 'nginx', 'nginx').join(''), ports)), {
    port: ports[0]!,
  })

export const startNodesCaddy = (program: string, ports: readonly number[]): Promise<ProxyServer> =>
  caddy(program, onThisMachine(getCodeBlocks(NODES_MANUAL, 'Caddy', 'caddyfile').join(''), ports))

/** Without TLS, as documented. */
export const startNodesHaproxy = (program: string, ports: readonly number[]): Promise<ProxyServer> =>
  launch((folder) => {
    const port = freePort()
    const documented = getCodeBlocks(NODES_MANUAL, 'HAProxy', 'haproxy').join('')
    const path = join(folder, 'haproxy.cfg')
    writeFileSync(path, onThisMachine(documented, ports).replace('bind :8080', `bind 127.0.0.1:${port}`))
    return { port, argv: [program, '-db', '-f', path] }
  })

interface Site {
  folder: string
  port: number
  behind: Behind
  /** A text of the document for this machine. */
  adapted(text: string): string
}

/** In the foreground as one process, with every file it writes in a folder of its own. */
const nginx = (program: string, write: (site: Site) => string, behind: Behind): Promise<ProxyServer> =>
  launch((folder) => {
    const port = freePort()
    const site = { folder, port, behind, adapted: (text: string) => adapted(text, { folder, port, behind }) }
    const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    const path = join(folder, 'nginx.conf')
    const own = kinds.map((kind) => `${kind}_temp_path ${join(folder, kind)};`).join('\n')
    writeFileSync(
      path,
      `daemon off;\nmaster_process off;\npid ${join(folder, 'pid')};\nerror_log stderr warn;\nevents {}\n` +
        `http {\naccess_log off;\n${own}\n${write(site)}\n}\n`,
    )
    return { port, argv: [program, '-e', 'stderr', '-p', folder, '-c', path] }
  })

const adapted = (text: string, { folder, port, behind }: Omit<Site, 'adapted'>): string =>
  text
    .replaceAll('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
    .replaceAll('/etc/letsencrypt/live/llm.example.com', folder)
    .replaceAll(/127\.0\.0\.1:2455\b/g, `127.0.0.1:${behind.port}`)
    .replaceAll(/127\.0\.0\.1:9091\b/g, `127.0.0.1:${behind.identityPort}`)

/**
 * What Nginx Proxy Manager 2 creates for a proxy host with Websockets Support and SSL, as far as it matters here: short
 * timeouts and compression for all, a default host for other names, then the Advanced box in the server block, and a
 * location with its own headers.
 */
const managed = ({ folder, port, behind }: Site, advanced: string): string => `
  gzip on;
  client_max_body_size 2000m;
  proxy_connect_timeout 90s;
  proxy_send_timeout 90s;
  proxy_read_timeout 90s;
  proxy_http_version 1.1;
  server {
    listen 127.0.0.1:${port} ssl default_server;
    server_name localhost;
    ssl_reject_handshake on;
  }
  server {
    set $forward_scheme http;
    set $server "127.0.0.1";
    set $port ${behind.port};
    listen 127.0.0.1:${port} ssl http2;
    server_name llm.example.com;
    ssl_certificate ${folder}/fullchain.pem;
    ssl_certificate_key ${folder}/privkey.pem;
    ${advanced}
    location / {
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $http_connection;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-Scheme $scheme;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Real-IP $remote_addr;
      proxy_pass $forward_scheme://$server:$port$request_uri;
    }
  }`

const filesIn = (folder: string): string => `${folder}/fullchain.pem ${folder}/privkey.pem`

/** Started in a folder with the certificate; resolves when it listens. Throws with its output if it ends instead. */
const launch = async (prepare: (folder: string) => { port: number; argv: string[] }): Promise<ProxyServer> => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-proxy-'))
  writeFileSync(join(folder, 'fullchain.pem'), cert)
  writeFileSync(join(folder, 'privkey.pem'), key)
  const { port, argv } = prepare(folder)
  const log = join(folder, 'output')
  const file = openSync(log, 'a')
  const child = Bun.spawn(argv, {
    env: { PATH: process.env.PATH ?? '', HOME: folder, ...libraryPath(argv[0]!) },
    stdio: ['ignore', file, file],
  })
  closeSync(file)
  const stop = async () => {
    child.kill('SIGKILL')
    await child.exited
    rmSync(folder, { recursive: true, force: true })
  }
  const ends = child.exited.then((code) => {
    throw new Error(`${argv[0]} ended with ${code}: ${readFileSync(log, 'utf8')}`)
  })
  ends.catch(() => {})
  try {
    await Promise.race([
      until(
        () => listens(port),
        () => `${argv[0]} does not listen on ${port}`,
      ),
      ends,
    ])
  } catch (error) {
    await stop()
    throw error
  }
  return { port, [Symbol.asyncDispose]: stop }
}

const listens = async (port: number): Promise<boolean> => {
  try {
    const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } })
    socket.end()
    return true
  } catch {
    return false // rejected until it listens
  }
}
