/** Stylesheet and scripts of the pages, embedded as text: hashed and compressed once, cached by browsers forever. */
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import htmx from 'htmx.org/dist/htmx.min.js' with { type: 'text' }
import access from '../../views/assets/access.js' with { type: 'text' }
import { SCRIPTS } from '../../views/assets/scripts.ts'
import { STYLES } from '../../views/assets/styles.ts'
import { AppError } from '../errors.ts'
import { open } from './gates.ts'
import { createHandlers } from './handlers.ts'

interface Asset {
  path: string
  type: string
  text: string
  gzip: Uint8Array<ArrayBuffer>
}

const asset = (name: string, extension: 'css' | 'js', text: string): Asset => ({
  path: `/assets/${name}-${createHash('sha256').update(text).digest('hex').slice(0, 12)}.${extension}`,
  type: extension === 'css' ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8',
  text,
  gzip: new Uint8Array(gzipSync(text, { level: 9 })),
})

/** Sent as one file each. */
const STYLE = asset('app', 'css', STYLES)
const SCRIPT = asset('app', 'js', SCRIPTS)
const ACCESS = asset('access', 'js', access)
const HTMX = asset('htmx', 'js', htmx)
const BY_PATH = new Map([STYLE, SCRIPT, ACCESS, HTMX].map((file) => [file.path, file]))

/** Paths for the page shell; the names change with the content. */
export const ASSETS = { style: STYLE.path, script: SCRIPT.path, access: ACCESS.path, htmx: HTMX.path } as const

/** `GET /assets/:file`. Throws `not_found` for a name not in this build. */
export const serveAsset = createHandlers(open('style and scripts of the pages'), (c) => {
  const file = BY_PATH.get(c.req.path)
  if (!file) throw new AppError('not_found')
  const isGzip = /\bgzip\b/.test(c.req.header('accept-encoding') ?? '')
  return c.body(isGzip ? file.gzip : file.text, 200, {
    'content-type': file.type,
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'Accept-Encoding',
    ...(isGzip && { 'content-encoding': 'gzip' }),
  })
})
