/**
 * A router that looks up once what answers a path without parameters: walking the tree of all routes is a fiftieth of a turn
 * (measured). A handler that is `alone` with such a request does by itself what the middleware before it would.
 */
import type { Result, Router } from 'hono/router'
import type { H, RouterRoute } from 'hono/types'

type Mounted = [H, RouterRoute]

export class KnownPaths implements Router<Mounted> {
  readonly name = 'KnownPaths'
  readonly #router: Router<Mounted>
  /** As they were mounted, `METHOD /path`, so that no client can make them more; null until the first that asks for it. */
  readonly #known = new Map<string, Result<Mounted> | null>()

  constructor(router: Router<Mounted>) {
    this.#router = router
  }

  add(method: string, path: string, handler: Mounted): void {
    this.#router.add(method, path, handler)
    if (!HAS_PARAMETERS.test(path)) this.#known.set(`${method} ${path}`, null)
  }

  match(method: string, path: string): Result<Mounted> {
    const name = `${method} ${path}`
    const known = this.#known.get(name)
    if (known) return known
    const found = this.#router.match(method, path)
    if (known === undefined) return found
    const kept = onlyAlone(found)
    this.#known.set(name, kept)
    return kept
  }
}

const onlyAlone = (found: Result<Mounted>): Result<Mounted> => {
  const [handlers] = found
  const lonely = handlers.find(([[handler]]) => 'isAlone' in handler)
  return lonely ? ([[lonely]] as Result<Mounted>) : found // as: there are no parameters
}

const HAS_PARAMETERS = /[:*{]/
