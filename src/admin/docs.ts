/** `/docs/api` and `/api/openapi.json`: the API documentation, generated from the route table on first request. */
import { gzipSync } from 'node:zlib'
import type { Hono } from 'hono'
import { raw } from 'hono/html'
import { z } from 'zod'
import { type Docs, DocsPage } from '../../views/docs/page.tsx'
import { openApi } from '../api-docs/openapi.ts'
import { getOperations, type Operation } from '../api-docs/operations.ts'
import { ALL_ERRORS, findIn, SHARED_ERRORS, shownGroups } from '../api-docs/page-operations.ts'
import type { AppEnv, Ctx } from '../boot/bindings.ts'
import { signedIn } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { originForLinks, publicOrigin } from '../http/public-origin.ts'
import { query } from '../http/query.ts'
import { reply } from '../http/reply.tsx'
import { routeTable } from '../http/route-table.ts'

/** The encoded document. */
interface Document {
  text: string
  compressed: Uint8Array<ArrayBuffer>
}

const DocsQuery = z.object({ q: z.string().trim().max(100).default('').describe('Words to look for.') })

/**
 * Creates the two routes. `apps` are described, including the one that contains them: tables are read on first request,
 * when they are complete.
 */
export const documentation = (apps: readonly Pick<Hono<AppEnv>, 'routes'>[]) => {
  const kept: { operations?: Operation[]; document?: Document; page?: Page } = {}
  const operations = (): Operation[] => {
    kept.operations ??= getOperations(apps.flatMap(routeTable))
    return kept.operations
  }
  const document = (): Document => {
    kept.document ??= getDocument(operations())
    return kept.document
  }
  /** Pages differ only in the address. */
  const pageAt = (address: Address): Page => {
    const { page } = kept
    if (page?.docs.baseUrl === address.baseUrl && page.docs.isGuess === address.isGuess) return page
    const docs = getDocs(address, operations(), '')
    kept.page = { docs, html: String(DocsPage(docs)) }
    return kept.page
  }

  /** `GET /api/openapi.json`. */
  const showOpenApi = createHandlers(signedIn(), (c) => {
    const isGzip = /\bgzip\b/.test(c.req.header('accept-encoding') ?? '')
    const { text, compressed } = document()
    return c.body(isGzip ? compressed : text, 200, {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-cache',
      vary: 'Accept-Encoding',
      ...(isGzip && { 'content-encoding': 'gzip' }),
    })
  })

  /** `GET /docs/api`. */
  const showDocs = createHandlers(signedIn(), query(DocsQuery), (c) => {
    const { q } = c.req.valid('query')
    if (q !== '') return reply(c, getDocs(getAddress(c), operations(), q), DocsPage)
    const { docs, html } = pageAt(getAddress(c))
    return reply(c, docs, () => raw(html))
  })

  return { showOpenApi, showDocs }
}

interface Page {
  docs: Docs
  /** Rendering two hundred routes takes 15 ms (Bun 1.4.5), and the page changes only with a release. */
  html: string
}

const getDocument = (operations: readonly Operation[]): Document => {
  const text = JSON.stringify(openApi(operations))
  return { text, compressed: new Uint8Array(gzipSync(text)) }
}

type Address = Pick<Docs, 'baseUrl' | 'isGuess'>

const getAddress = (c: Ctx): Address => ({
  baseUrl: originForLinks(c),
  isGuess: publicOrigin(c) === null,
})

const getDocs = (address: Address, operations: readonly Operation[], search: string): Docs => {
  const groups = shownGroups(operations, address.baseUrl)
  const { total, ids } = findIn(groups, search)
  return { ...address, search, total, found: [...ids], groups, sharedErrors: SHARED_ERRORS, errors: ALL_ERRORS }
}
